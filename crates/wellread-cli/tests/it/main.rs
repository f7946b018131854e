//! The command as a user runs it: a real process, its exit code, its output, its files.

mod advise;
mod bad_input;
mod bench;
mod cells;
mod cells_in_words;
mod cells_of_labels;
mod column_names;
mod columns;
mod columns_of_times;
mod compare;
mod convert;
mod damaged_columns;
mod data;
mod deep_folders;
mod embed;
mod everywhere;
mod false_alarms;
mod infer;
mod info;
mod left_out;
mod left_out_sites;
mod limits;
mod masks;
mod missing;
mod names;
mod new_set;
mod new_user;
mod nodes;
#[cfg(target_os = "linux")]
mod odd_paths;
mod option_names;
mod plate;
mod processes;
mod recipe;
mod resume;
mod sites;
#[cfg(target_os = "linux")]
mod streams;
mod support;
mod task_native;
mod tasks;
mod trace;
mod without_checksums;
