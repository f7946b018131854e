//! `wellread task-native`: the process of a task whose experiment is our own. Started by `wellread tasks`; what it does is
//! in `wellread-train`.

/// A task whose experiment is our own.
#[derive(clap::Args)]
pub struct Args {
    /// Look at the task and its settings, and run nothing.
    #[arg(long)]
    check: bool,
}

/// Runs the task that the environment names; gives the exit code.
pub fn run(args: &Args) -> u8 {
    wellread_train::main(args.check)
}
