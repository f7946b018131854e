//! The command as a user runs it: a real process, its exit code, its output, its files.

mod bad_input;
mod bench;
mod data;
mod infer;
mod processes;
mod support;
