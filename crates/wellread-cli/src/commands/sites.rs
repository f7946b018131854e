//! The flags of sets whose images are made of several files each: layouts of microscopes, patterns, missing files.

use crate::output::{Failure, Outcome};
use std::path::Path;
use wellread_store::sites::{SiteOptions, layout_names};
use wellread_store::{Missing, Unmatched};

/// Options of sets whose images are made of several files each.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteArgs {
    #[arg(help_heading = "Images of several files", long, value_name = "LAYOUT", help = layouts_there_are())]
    pub layout: Option<String>,
    /// Pattern of file names: text, {field} and * for anything, such as 'r{row}c{col}f{site}p{z}-ch{channel}*'. Axes of
    /// an image are the fields channel (or ch, c, wavelength), z (plane, zstep) and time (timepoint, t). Plate, well,
    /// row, col (column) and site (field, fov) say where it is. All others become columns of their own names. {field:d}
    /// matches digits alone, {field:2} two characters. A / separates folders.
    #[arg(help_heading = "Images of several files", long, value_name = "PATTERN", conflicts_with = "layout")]
    pub pattern: Option<String>,
    /// Images that lack one of their files: error fails where one is read, skip leaves them out, zero fills the missing
    /// part with 0.
    #[arg(help_heading = "Images of several files", long, value_name = "WHAT", default_value = "error", value_parser = parse_missing)]
    pub missing: Missing,
    /// Files whose names do not fit the chosen layout or pattern: error fails, skip leaves them out.
    #[arg(help_heading = "Images of several files", long, value_name = "WHAT", default_value = "error", value_parser = parse_unmatched)]
    pub unmatched: Unmatched,
    /// Replace the beginning FROM of paths in a table (load_data.csv) of another machine with TO. A relative TO
    /// begins at the folder of the table, on all nodes of a cluster. Repeat the option for several.
    #[arg(help_heading = "Images of several files", long, value_name = "FROM=TO", value_parser = parse_path_map)]
    pub path_map: Vec<(String, String)>,
}

/// The help of `--layout`, which names all.
fn layouts_there_are() -> String {
    format!(
        "How files of a folder make images: {}, or files (each file is an image). By default the names decide, if all of them fit one \
         layout",
        layout_names().join(", ")
    )
}

fn parse_missing(text: &str) -> Result<Missing, String> {
    text.parse()
}

fn parse_unmatched(text: &str) -> Result<Unmatched, String> {
    text.parse()
}

/// Parses `FROM=TO`: the last `=` is that between them where several are there, since it is rare in paths here.
fn parse_path_map(text: &str) -> Result<(String, String), String> {
    let parts = text.rsplit_once('=').filter(|(from, to)| !from.is_empty() && !to.is_empty());
    let (from, to) = parts.ok_or_else(|| format!("{text:?} is not FROM=TO, two beginnings of paths"))?;
    Ok((from.to_owned(), to.to_owned()))
}

impl SiteArgs {
    /// As the store's options.
    pub fn options(&self) -> SiteOptions {
        SiteOptions {
            layout: self.layout.clone(),
            pattern: self.pattern.clone(),
            missing: self.missing,
            unmatched: self.unmatched,
            path_map: self.path_map.clone(),
        }
    }

    /// The same of a command whose images, those of `option`, need not be files.
    pub fn of(&self, path: Option<&Path>, option: &str) -> Outcome<SiteOptions> {
        let options = self.options();
        if path.is_none() && !options.is_default() {
            return Err(Failure::Usage(format!(
                "--layout, --pattern, --missing, --unmatched and --path-map say how files make images: name them with \
                 {option} PATH"
            )));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsers_accept_what_they_document() {
        assert_eq!(parse_path_map("/a=b=/c"), Ok(("/a=b".to_owned(), "/c".to_owned())));
        assert!(parse_path_map("/a").is_err() && parse_path_map("=/c").is_err());
        assert!(parse_missing("zero") == Ok(Missing::Zero) && parse_unmatched("zero").is_err());
    }

    #[test]
    fn the_help_names_every_layout() {
        let help = layouts_there_are();
        assert!(help.starts_with("How files of a folder make images: harmony, imagexpress, "), "{help}");
        let last = ", cellomics, cellprofiler, ome-companion, or files (each file is an image)";
        assert!(help.contains(last), "{help}");
        assert!(layout_names().iter().all(|name| help.contains(name)), "{help}");
    }
}
