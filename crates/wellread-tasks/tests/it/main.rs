//! Whole runs over real small repositories, which the tests make with git; tasks are shell scripts, or none at all.

#![cfg(target_os = "linux")]

mod branches;
mod environments;
mod failures;
mod python;
mod runs;
mod support;
