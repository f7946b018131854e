//! Options of `wellread bench` that change nothing in the benchmarks that are run, in notes.
//!
//! ```text
//!  Config ─▶ options whose values are no defaults ─▶ without those that a benchmark of this run has ─▶ a note each
//! ```

use wellread_bench::choices::Access;
use wellread_bench::{Config, suite};

const DATASET: &[&str] = &["dataset"];
const DATALOADER: &[&str] = &["dataloader"];
const LOOP: &[&str] = &["loop"];
/// All benchmarks that make tensors.
const TENSORS: &[&str] = &["dataset", "dataloader", "loop", "conversion"];

/// An option of some benchmarks.
struct Owned {
    option: &'static str,
    /// Whether its value is another than the default.
    is_given: bool,
    /// The benchmarks that have it.
    of: &'static [&'static str],
    /// Another benchmark, and its option of the same meaning.
    twin: Option<(&'static str, &'static str)>,
}

/// The options that no benchmark of this run has, and settings of orders of access that are not measured.
pub(super) fn notes(config: &Config) -> Vec<String> {
    let benchmarks = suite::select(&config.what).unwrap_or_default();
    let run: Vec<&str> = benchmarks.iter().map(|benchmark| benchmark.name).collect();
    let has = |name: &str| run.contains(&name);
    let idle = |owned: &Owned| owned.is_given && !owned.of.iter().any(|name| has(name));
    let said = |Owned { option, of, twin, .. }: Owned| {
        let twin = twin.filter(|(benchmark, _)| has(benchmark));
        let twin = twin.map_or_else(String::new, |(name, own)| format!(" ({name} has {own})"));
        format!("{option} belongs to {}, and changes nothing in {}{twin}", of.join(", "), run.join(", "))
    };
    let mut notes: Vec<String> = owned(config).into_iter().filter(idle).map(said).collect();
    let (defaults, access) = (Config::default(), &config.access);
    let blocks = access.contains(&Access::Block);
    if has("dataset")
        && config.block_rows != defaults.block_rows
        && !blocks
        && !access.contains(&Access::Grouped)
    {
        notes.push("--block-rows changes nothing without --access grouped or block".to_owned());
    }
    if has("dataset") && config.block_window != defaults.block_window && !blocks {
        notes.push("--block-window changes nothing without --access block".to_owned());
    }
    let is_python_asked = config.in_python() || (config.find_torch && has("conversion"));
    if config.turn_limit != defaults.turn_limit && !is_python_asked {
        notes.push("--turn-limit changes nothing without --framework pytorch or jax".to_owned());
    }
    notes
}

/// The options that not all benchmarks have.
fn owned(config: &Config) -> Vec<Owned> {
    let defaults = Config::default();
    let of = |benchmarks: &'static [&'static str], option: &'static str, is_given: bool| Owned {
        option,
        is_given,
        of: benchmarks,
        twin: None,
    };
    let twin = |owned: Owned, benchmark: &'static str, option: &'static str| Owned {
        twin: Some((benchmark, option)),
        ..owned
    };
    let transforms = config.transforms != defaults.transforms || !config.user_transforms.is_empty();
    let batch_sizes = of(DATALOADER, "--batch-sizes", config.batch_sizes != defaults.batch_sizes);
    let workers = of(DATALOADER, "--workers", config.workers != defaults.workers);
    let batch_size = of(LOOP, "--batch-size", config.batch_size != defaults.batch_size);
    let loop_workers = of(LOOP, "--loop-workers", config.loop_workers != defaults.loop_workers);
    vec![
        of(DATASET, "--access", config.access != defaults.access),
        of(DATASET, "--block-rows", config.block_rows != defaults.block_rows),
        of(DATASET, "--block-window", config.block_window != defaults.block_window),
        of(DATASET, "--transform", transforms),
        twin(of(DATASET, "--cache", config.caches != defaults.caches), "dataloader", "--loader-cache"),
        of(&["dataset", "conversion"], "--samples", config.samples != defaults.samples),
        twin(batch_sizes, "loop", "--batch-size"),
        twin(workers, "loop", "--loop-workers"),
        of(DATALOADER, "--keep-open", config.keep_open),
        of(DATALOADER, "--loader-cache", config.loader_caches != defaults.loader_caches),
        of(LOOP, "--model", config.model != defaults.model),
        of(LOOP, "--mode", config.modes != defaults.modes),
        of(LOOP, "--steps", config.steps != defaults.steps),
        twin(batch_size, "dataloader", "--batch-sizes"),
        twin(loop_workers, "dataloader", "--workers"),
        of(&["dataloader", "loop"], "--memory", config.memory.is_some()),
        of(&["dataloader", "loop"], "--prefetch", config.prefetch.is_some()),
        of(TENSORS, "--crop", config.crop.is_some()),
        of(TENSORS, "--scale", config.scale.is_some()),
        of(&["storage", "dataloader", "loop"], "--no-cold", !config.cold),
        of(&["storage"], "--random-images", config.random_images != defaults.random_images),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes_of(what: &[&str], config: Config) -> Vec<String> {
        let what = what.iter().map(|&name| name.to_owned()).collect();
        notes(&Config { what, ..config })
    }

    #[test]
    fn an_option_of_another_benchmark_is_named_with_that_of_this_one() {
        let config = || Config { batch_sizes: vec![256], cold: false, ..Config::default() };
        assert_eq!(
            notes_of(&["loop"], config()),
            ["--batch-sizes belongs to dataloader, and changes nothing in loop (loop has --batch-size)"]
        );
        assert_eq!(
            notes_of(&["dataset", "conversion"], config()),
            [
                "--batch-sizes belongs to dataloader, and changes nothing in dataset, conversion",
                "--no-cold belongs to storage, dataloader, loop, and changes nothing in dataset, conversion",
            ]
        );
        for what in ["all", "dataloader"] {
            assert_eq!(notes_of(&[what], config()), [""; 0], "{what}");
        }
        assert_eq!(notes_of(&["storage"], Config::default()), [""; 0]);
        let limited = Config { turn_limit: std::time::Duration::from_secs(1), ..Config::default() };
        assert_eq!(notes_of(&["conversion"], limited.clone()), [""; 0]);
        let said = "--turn-limit changes nothing without --framework pytorch or jax";
        assert_eq!(notes_of(&["dataset"], limited), [said]);
    }

    #[test]
    fn settings_of_an_order_that_is_not_measured_are_named() {
        let config = |access| Config { access, block_rows: 3, block_window: 2, ..Config::default() };
        let of = |access| notes_of(&["dataset"], config(access));
        assert_eq!(of(vec![Access::Block]), [""; 0]);
        assert_eq!(of(vec![Access::Grouped]), ["--block-window changes nothing without --access block"]);
        assert_eq!(
            of(vec![Access::Random]),
            [
                "--block-rows changes nothing without --access grouped or block",
                "--block-window changes nothing without --access block",
            ]
        );
    }
}
