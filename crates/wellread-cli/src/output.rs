//! What the user sees: progress bars, JSON documents, plain text, failures.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::time::Duration;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The arguments make no sense together: exit code 2.
    Usage(String),
    /// Something failed: exit code 1.
    Failed(String),
    /// Failed, and everything was already said: exit code 1.
    Reported,
    /// Ended, and everything was already said: this exit code.
    Ended(u8),
    /// A comparison found a regression and has said so: exit code 3.
    Regression,
}

/// Result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl From<wellread_store::Error> for Failure {
    fn from(error: wellread_store::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// How to talk to the user.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    /// One JSON document on stdout.
    pub json: bool,
    /// No progress, no hints.
    pub quiet: bool,
    /// A step of a longer command, which prints the one JSON document.
    nested: bool,
}

impl Ui {
    /// From the global flags.
    pub const fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet, nested: false }
    }

    /// The same for a step of a longer command.
    pub const fn nested(self) -> Self {
        Self { nested: true, ..self }
    }

    /// A progress bar over `total` steps; hidden when quiet or when stderr is no terminal, and for the first
    /// half second, so that fast commands stay silent.
    pub fn progress(self, total: u64, what: &str) -> ProgressBar {
        if self.quiet || !console_is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(8));
        bar.set_style(style(BAR));
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }

    /// Prints a line for people: on stdout, or on stderr when stdout carries JSON.
    pub fn say(self, text: impl AsRef<str>) {
        if self.json {
            if !self.quiet {
                eprintln!("{}", text.as_ref());
            }
        } else {
            print_line(text.as_ref());
        }
    }

    /// Prints a line that helps but may be left out.
    pub fn hint(self, text: impl AsRef<str>) {
        if !self.quiet {
            eprintln!("{}", text.as_ref());
        }
    }

    /// Prints the JSON document when `--json` was given.
    pub fn document(self, value: &impl serde::Serialize) -> Outcome {
        if self.json && !self.nested {
            let text = serde_json::to_string_pretty(value)
                .map_err(|e| Failure::Failed(format!("cannot write the result as JSON: {e}")))?;
            print_line(&text);
        }
        Ok(())
    }
}

/// Writes to stdout and ends quietly when the reader went away (`wellread … | head`).
fn print_line(text: &str) {
    if writeln!(std::io::stdout().lock(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// How progress is drawn: what is done, how far, how long still.
const BAR: &str = "{prefix:24!} {bar:32} {pos}/{len} ({eta} left)";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Shows what is being done, steps done and steps in all on `bar`.
pub fn shown_on(bar: &ProgressBar) -> impl Fn(&str, usize, usize) {
    |what, done, of| {
        if bar.prefix() != what {
            bar.set_prefix(what.to_owned());
        }
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    }
}

/// Shows a line of current figures below `bar`, cut to the terminal's width.
pub fn figures_on(bar: &ProgressBar) -> impl Fn(&str) {
    |line| {
        if bar.message().is_empty() {
            bar.set_style(style(&format!("{BAR}\n{{wide_msg}}")));
        }
        bar.set_message(line.to_owned());
    }
}

fn console_is_terminal() -> bool {
    use std::io::IsTerminal as _;
    std::io::stderr().is_terminal()
}

/// Bytes with a binary unit, such as `1.5 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}
