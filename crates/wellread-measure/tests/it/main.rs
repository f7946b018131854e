//! Statistical promises checked by simulation. All seeds are fixed: the counts are the same on every run.

mod coverage;
mod processes;
mod verdicts;
