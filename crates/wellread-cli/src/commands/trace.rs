//! `--trace FILE`, of the commands that measure or read much.

use super::command_line::command_line;
use super::result_file::local_path;
use crate::output::{Outcome, Ui};
use std::path::PathBuf;
use wellread_store::trace;

/// Where a timeline goes.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TraceArgs {
    /// Record what each thread does (open, read, decompress, transform, wait, steps) as a timeline in this file. Open
    /// the file at ui.perfetto.dev.
    #[arg(long, value_name = "FILE", value_parser = local_path())]
    trace: Option<PathBuf>,
}

impl TraceArgs {
    /// Whether a timeline is asked for.
    pub fn is_asked(&self) -> bool {
        self.trace.is_some()
    }

    /// Does `work`, recorded where that was asked for. The file is written whatever comes of it.
    pub fn record(&self, ui: Ui, work: impl FnOnce() -> Outcome) -> Outcome {
        let Some(path) = &self.trace else { return work() };
        trace::start(path, &command_line())?;
        let outcome = work();
        let written = trace::finish();
        if let Ok(Some(trace::Written { path, spans, dropped })) = &written {
            let but = match dropped {
                0 => String::new(),
                dropped => format!("; {dropped} more were not kept"),
            };
            ui.hint(format!(
                "Trace: {} ({spans} spans{but}); open it at https://ui.perfetto.dev",
                path.display()
            ));
        }
        // An error of the command itself matters more.
        outcome.and_then(|()| Ok(written.map(drop)?))
    }
}
