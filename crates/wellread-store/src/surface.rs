//! The names of options in messages: flags for the command line, arguments for Python.
//!
//! ```text
//!  program, at its start ── set(CommandLine) ──▶ surface of the process
//!  hint: name its column ({option("cells.label")}) ──▶ (--cells-label) · (label=) · (label), for Rust
//! ```

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU8, Ordering};

/// Whom messages of this process are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Surface {
    /// A caller of this crate: options are fields and methods.
    #[default]
    Rust,
    /// A user of the command line: options are flags.
    CommandLine,
    /// A caller of the Python package: options are arguments by keyword.
    Python,
}

static SURFACE: AtomicU8 = AtomicU8::new(0);

/// Options that are arguments in Python and have no flag.
const WITHOUT_FLAG: [&str; 1] = ["rows"];

/// Options that are flags of `wellread convert` and no arguments in Python.
const WITHOUT_ARGUMENT: [&str; 1] = ["without_column"];

/// Options that are flags, and methods of a set elsewhere.
const METHODS: [(&str, &str); 1] = [("cells", "Dataset.cells")];

/// Says, once at the start of a program, whom its messages are for. Texts made before stay as they are.
pub fn set(surface: Surface) {
    SURFACE.store(surface as u8, Ordering::Relaxed);
}

/// Whom messages of this process are for.
pub fn current() -> Surface {
    match SURFACE.load(Ordering::Relaxed) {
        1 => Surface::CommandLine,
        2 => Surface::Python,
        _ => Surface::Rust,
    }
}

/// An option as it is called in a message of this process. Shown with [`fmt::Display`].
#[derive(Clone, Copy, Debug)]
pub struct NamedOption<'a> {
    path: &'static str,
    value: Option<&'a str>,
}

/// An option: `missing`, or of a group of options `cells.by`, which is `--cells-by` on the command line and `by` elsewhere.
pub fn option(path: &'static str) -> NamedOption<'static> {
    NamedOption { path, value: None }
}

/// An option with its value: `true` for one that is on or off, `FROM=TO` for a pair, `skip|zero` for either of two.
///
/// ```
/// use wellread_store::surface::option_as;
/// assert_eq!(option_as("cells.unmatched", "skip").to_string(), "unmatched skip");
/// ```
pub fn option_as<'a>(path: &'static str, value: &'a str) -> NamedOption<'a> {
    NamedOption { path, value: Some(value) }
}

/// The sentence for those who give a table of cells where one of images belongs.
pub(crate) fn for_cells() -> String {
    format!("A table with a row for each cell goes to {}", option("cells"))
}

impl fmt::Display for NamedOption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, current())
    }
}

impl NamedOption<'_> {
    fn write(&self, f: &mut dyn Write, surface: Surface) -> fmt::Result {
        let name = match self.path {
            // The command's own --format is that of what is written.
            "read_as" => "format",
            path => path.rsplit('.').next().unwrap_or(path),
        };
        let method = METHODS.iter().find(|(path, _)| *path == self.path);
        if let Some((_, method)) = method.filter(|_| surface != Surface::CommandLine) {
            return f.write_str(method);
        }
        match (surface, self.value) {
            (Surface::CommandLine, value) if !WITHOUT_FLAG.contains(&name) => {
                write!(f, "--{}", self.path.replace(['.', '_'], "-"))?;
                match value {
                    None | Some("true") => Ok(()),
                    // Text that a shell would read otherwise.
                    Some(value) if value.contains(['{', '*', ' ']) => write!(f, " '{value}'"),
                    Some(value) => write!(f, " {value}"),
                }
            }
            (Surface::Python, _) if WITHOUT_ARGUMENT.contains(&name) => {
                write!(f, "wellread convert --{}", name.replace('_', "-"))
            }
            (Surface::Python, None) => write!(f, "{name}="),
            (Surface::Python, Some("true")) => write!(f, "{name}=True"),
            (Surface::Python, Some(value)) => {
                if let Some((from, to)) = value.split_once('=') {
                    return write!(f, "{name}={{{from:?}: {to:?}}}");
                }
                let words: Vec<String> = value.split('|').map(|word| format!("{word:?}")).collect();
                write!(f, "{name}={}", words.join("|"))
            }
            (_, None) => f.write_str(name),
            (_, Some(value)) => write!(f, "{name} {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_surface_calls_an_option_by_its_own_name() {
        let shown = |option: NamedOption<'_>| {
            [Surface::Rust, Surface::CommandLine, Surface::Python].map(|surface| {
                let mut text = String::new();
                option.write(&mut text, surface).unwrap();
                text
            })
        };
        assert_eq!(shown(option("on")), ["on", "--on", "on="]);
        assert_eq!(shown(option("cells.by")), ["by", "--cells-by", "by="]);
        assert_eq!(shown(option("rows")), ["rows", "rows", "rows="]);
        assert_eq!(shown(option("cells")), ["Dataset.cells", "--cells", "Dataset.cells"]);
        assert_eq!(
            shown(option("without_column")),
            ["without_column", "--without-column", "wellread convert --without-column"]
        );
        assert_eq!(shown(option_as("read_as", "tiff")), ["format tiff", "--read-as tiff", "format=\"tiff\""]);
        assert_eq!(
            shown(option_as("cells.unmatched", "skip")),
            ["unmatched skip", "--cells-unmatched skip", "unmatched=\"skip\""]
        );
        assert_eq!(
            shown(option_as("cells.label_masks", "true")),
            ["label_masks true", "--cells-label-masks", "label_masks=True"]
        );
        assert_eq!(
            shown(option_as("path_map", r"D:\il=/fields")),
            [r"path_map D:\il=/fields", r"--path-map D:\il=/fields", r#"path_map={"D:\\il": "/fields"}"#]
        );
        assert_eq!(
            shown(option_as("missing", "skip|zero")),
            ["missing skip|zero", "--missing skip|zero", "missing=\"skip\"|\"zero\""]
        );
        assert_eq!(shown(option_as("pattern", "{well}*.tif"))[1], "--pattern '{well}*.tif'");
        assert_eq!(current(), Surface::Rust);
    }
}
