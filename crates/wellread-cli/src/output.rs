//! Output for the user: progress bars, JSON documents, plain text, failures.

use console::Term;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wellread_bench::WrongUsage;
use wellread_compare::UsageError;
use wellread_measure::to_stderr;

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
        if error.is_choice() { Self::Usage(error.to_string()) } else { Self::Failed(error.to_string()) }
    }
}

impl From<anyhow::Error> for Failure {
    /// A wrong choice is one whatever command meets it, and whoever adds where.
    fn from(error: anyhow::Error) -> Self {
        let store = error.downcast_ref::<wellread_store::Error>();
        let is_usage = error.is::<WrongUsage>() || error.is::<UsageError>();
        if is_usage || store.is_some_and(wellread_store::Error::is_choice) {
            Self::Usage(format!("{error:#}"))
        } else {
            Self::Failed(format!("{error:#}"))
        }
    }
}

/// How to talk to the user.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    /// One JSON document on stdout.
    pub json: bool,
    /// No progress, no hints, no notes: results, errors, and what is lost or changed.
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

    /// A progress bar over `total` steps. It is hidden when quiet or when stderr is no terminal, and for the
    /// first half second, so that fast commands stay silent.
    pub fn progress(self, total: u64, what: &str) -> ProgressBar {
        if self.quiet || !console_is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(length(total), ProgressDrawTarget::stderr_with_hz(8));
        bar.set_style(style(BAR));
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }

    /// Prints a line for people: on stdout, or on stderr when stdout carries JSON.
    pub fn say(self, text: impl AsRef<str>) {
        if self.json {
            if !self.quiet {
                to_stderr(text);
            }
        } else {
            print_line(text.as_ref());
        }
    }

    /// Columns for a table: those of the terminal, or as many as people read well where there is none or it is wider.
    pub fn table_width(self) -> usize {
        let terminal = if self.json { Term::stderr() } else { Term::stdout() };
        columns(&terminal).unwrap_or(MAX_LINE_WIDTH).max(MIN_TABLE_WIDTH)
    }

    /// Prints sentences for people: as [`Self::say`], and in a terminal broken between words.
    pub fn say_wrapped(self, text: impl AsRef<str>) {
        let terminal = if self.json { Term::stderr() } else { Term::stdout() };
        self.say(wrapped(text.as_ref(), columns(&terminal)));
    }

    /// Prints a line that helps but may be left out; in a terminal broken between words.
    pub fn hint(self, text: impl AsRef<str>) {
        if !self.quiet {
            to_stderr(wrapped(text.as_ref(), columns(&Term::stderr())));
        }
    }

    /// Prints what is lost or changed, also when quiet; in a terminal broken between words.
    pub fn warn(self, text: impl AsRef<str>) {
        if !(self.json && self.quiet) {
            to_stderr(wrapped(text.as_ref(), columns(&Term::stderr())));
        }
    }

    /// Prints a line about a phase of a long command that has ended or begins, where no progress bar is shown.
    pub fn phase(self, text: &str) {
        if !self.quiet && !console_is_terminal() {
            to_stderr(text);
        }
    }

    /// Prints a JSON document that is text already when `--json` was given.
    pub fn document_text(self, text: &str) {
        if self.json && !self.nested {
            print_line(text);
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

/// By what writing to stdout failed first; nothing is written after that.
static STDOUT_ERROR: Mutex<Option<io::Error>> = Mutex::new(None);
/// Whether stdout was closed when the program began: writing to what is in its place does not fail.
static STDOUT_IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Has all that is written to stdout from now on fail.
pub fn refuse_stdout() {
    STDOUT_IS_CLOSED.store(true, Ordering::Relaxed);
}

/// Has `write` write to stdout, unless that failed before.
pub fn to_stdout(write: impl FnOnce() -> io::Result<()>) {
    let mut lost = STDOUT_ERROR.lock().unwrap_or_else(PoisonError::into_inner);
    if lost.is_none() && STDOUT_IS_CLOSED.load(Ordering::Relaxed) {
        *lost = Some(io::Error::other("stdout is closed"));
    } else if lost.is_none() {
        *lost = write().err();
    }
}

fn print_line(text: &str) {
    to_stdout(|| writeln!(io::stdout().lock(), "{text}"));
}

/// Why what was printed on stdout has not all arrived, if it has not. A reader that went away (`wellread … | head`) wants no
/// more: that is no failure.
pub fn stdout_failure() -> Option<String> {
    // A closed stdout has nothing to flush, and nothing is lost where nothing was printed.
    if !STDOUT_IS_CLOSED.load(Ordering::Relaxed) {
        to_stdout(|| io::stdout().flush());
    }
    let lost = STDOUT_ERROR.lock().unwrap_or_else(PoisonError::into_inner);
    let error = lost.as_ref().filter(|error| error.kind() != io::ErrorKind::BrokenPipe)?;
    let words = error.to_string();
    let cause = words.split(" (os error").next().unwrap_or_default();
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space or write elsewhere",
        _ => "check where the output goes",
    };
    Some(format!("cannot write the output: {cause} (hint: {hint})"))
}

/// Widest lines that are printed for people, who find wider ones hard to read.
pub const MAX_LINE_WIDTH: usize = 100;
/// A table is no narrower, whatever the terminal is.
const MIN_TABLE_WIDTH: usize = 60;

/// Columns to fill with sentences; `None` where the output is no terminal, which gets them as they are.
fn columns(terminal: &Term) -> Option<usize> {
    terminal.size_checked().map(|(_, columns)| MAX_LINE_WIDTH.min(columns.into()))
}

/// The text with its lines broken at spaces, so that they fit; what goes on is indented as its line is.
pub fn wrapped(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    for (i, line) in text.split('\n').enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let words = line.trim_start_matches(' ');
        let indent = &line[..line.len() - words.len()];
        let mut at = indent.len();
        out += indent;
        for (k, word) in words.split(' ').enumerate() {
            let width = word.chars().count();
            if k > 0 && at + 1 + width > columns {
                out.push('\n');
                out += indent;
                at = indent.len();
            } else if k > 0 {
                out.push(' ');
                at += 1;
            }
            out += word;
            at += width;
        }
    }
    out
}

/// How progress is drawn: what is done, how far, how long still.
const BAR: &str = "{prefix:24!} {bar:32} {pos}/{len} ({eta} left)";
/// The same where the command itself knows how long.
const ESTIMATED_BAR: &str = "{prefix:24!} {bar:32} {pos}/{len} ({told} left)";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The time left as a command knows it, counting down between two words on it.
#[derive(Clone, Debug, Default)]
pub struct TimeLeft(Arc<Mutex<Option<Instant>>>);

impl TimeLeft {
    /// Notes what is left from now on; `None` leaves it to the pace of the steps so far.
    pub fn set(&self, left: Option<Duration>) {
        let end = left.and_then(|left| Instant::now().checked_add(left));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    /// The time that is left; `None` if nothing was said.
    fn get(&self) -> Option<Duration> {
        let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Has a bar show it.
    pub fn show_on(&self, bar: &ProgressBar) {
        bar.set_style(self.style(ESTIMATED_BAR));
    }

    fn style(&self, template: &str) -> ProgressStyle {
        let this = self.clone();
        let told = move |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let left = this.get().unwrap_or_else(|| state.eta());
            let _ = write!(out, "{:#}", HumanDuration(Duration::from_secs(left.as_secs_f64().ceil() as u64)));
        };
        style(template).with_key("told", told)
    }
}

/// Shows what is being done, steps done and steps in all on `bar`.
pub fn shown_on(bar: &ProgressBar) -> impl Fn(&str, usize, usize) {
    |what, done, of| {
        // The position first: the one of the phase before would stand beside the name of this one, and look like its end.
        bar.set_position(done as u64);
        if bar.prefix() != what {
            bar.set_prefix(what.to_owned());
        }
        match length(of as u64) {
            Some(steps) => bar.set_length(steps),
            None => bar.unset_length(),
        }
    }
}

/// The length of a bar over so many steps. It has none where nobody knows yet how many there are: a bar of 0 steps looks done.
fn length(steps: u64) -> Option<u64> {
    Some(steps).filter(|&steps| steps > 0)
}

/// Shows a line of current figures below `bar`, cut to the terminal's width.
pub fn figures_on<'a>(bar: &'a ProgressBar, left: &'a TimeLeft) -> impl Fn(&str) + 'a {
    move |line| {
        if bar.message().is_empty() {
            bar.set_style(left.style(&format!("{ESTIMATED_BAR}\n{{wide_msg}}")));
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

#[cfg(test)]
mod tests {
    use super::{length, shown_on, wrapped};
    use indicatif::ProgressBar;

    #[test]
    fn a_bar_of_nobody_knows_how_many_steps_does_not_look_done() {
        let bar = ProgressBar::hidden();
        for (done, of, wanted) in [(0, 0, None), (1, 5, Some(5)), (0, 0, None)] {
            shown_on(&bar)("preparing", done, of);
            assert_eq!((bar.position(), bar.length()), (done as u64, wanted));
        }
        assert_eq!((length(0), length(3)), (None, Some(3)));
    }

    #[test]
    fn sentences_are_broken_between_words_and_keep_their_indent() {
        let text = "one two three\n    four five\n\nsix";
        assert_eq!(wrapped(text, None), text);
        assert_eq!(wrapped(text, Some(13)), text);
        assert_eq!(wrapped(text, Some(12)), "one two\nthree\n    four\n    five\n\nsix");
        // A word stays whole, and so does a number with its unit.
        assert_eq!(wrapped("a/long/path 12\u{a0}ms", Some(6)), "a/long/path\n12\u{a0}ms");
    }
}
