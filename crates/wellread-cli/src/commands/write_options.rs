//! Options of writing a set: `convert` and `generate`.

use super::{default_jobs, parse_jobs, parse_tczyx};
use crate::output::Ui;
use clap::ValueEnum as _;
use wellread_store::{Compression, Format, Tune, WriteOptions};

/// Options of writing, shared with `generate`.
#[derive(clap::Args, Clone, Debug)]
pub struct WriteArgs {
    /// Codec: none, lz4, zstd[:LEVEL], deflate[:LEVEL], lzw, packbits, snappy; by default the format's own choice.
    #[arg(long, default_value = "default", hide_default_value = true)]
    pub compression: Compression,
    /// Chunk (tile) size; X = 0 makes strips of Y rows in TIFF.
    #[arg(long, value_name = "T,C,Z,Y,X", value_parser = parse_chunk)]
    pub chunk: Option<[usize; 5]>,
    /// Shard size (OME-Zarr 0.5).
    #[arg(long, value_name = "T,C,Z,Y,X", value_parser = parse_tczyx)]
    pub shard: Option<[usize; 5]>,
    /// Reads that the layout of a table is made for.
    #[arg(long, value_enum, default_value_t = TuneArg::Random)]
    pub tune: TuneArg,
    /// Version or variant of the format: 0.4 or 0.5 (OME-Zarr), ome, plain or bare (TIFF),
    /// image, tile, volume, z-plane or block (ome-arrow-dataset).
    #[arg(long)]
    pub variant: Option<String>,
    /// Leave out the checksums by which readers find damage.
    #[arg(long)]
    pub no_checksums: bool,
    /// Replace an existing target.
    #[arg(long)]
    pub overwrite: bool,
    /// Threads for compression, one at least; by default one for each processor.
    #[arg(long, default_value_t = default_jobs(), value_parser = parse_jobs)]
    pub jobs: usize,
}

/// [`Tune`] on the command line.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum TuneArg {
    /// Random reads of single images.
    Random,
    /// Whole-set scans.
    Scan,
    /// Smallest files.
    Size,
    /// The layout that the reference library writes by default.
    Reference,
}

impl WriteArgs {
    /// Says which options make no difference to a set in this format.
    pub fn say_what_is_ignored(&self, format: &Format, ui: Ui) {
        let options = self.options();
        if self.no_checksums && !format.has_checksums {
            let name = format.name;
            ui.hint(format!(
                "note: --no-checksums changes nothing in {name}: its files have none of their own"
            ));
        }
        if options.tune == Tune::default() || (format.uses_tune)(&options) {
            return;
        }
        let tune = self.tune.to_possible_value();
        let tune = tune.as_ref().map_or("", |value| value.get_name());
        ui.hint(format!(
            "note: --tune {tune} changes nothing in {} with compression {}",
            format.name, options.compression
        ));
    }

    /// As text, for another process.
    pub fn document(&self) -> serde_json::Value {
        let tune = self.tune.to_possible_value();
        serde_json::json!({
            "compression": self.compression, "chunk": self.chunk, "shard": self.shard,
            "tune": tune.as_ref().map_or("random", |value| value.get_name()),
            "variant": self.variant, "checksums": !self.no_checksums,
        })
    }

    /// As the store's options.
    pub fn options(&self) -> WriteOptions {
        WriteOptions {
            compression: self.compression,
            chunk: self.chunk,
            shard: self.shard,
            tune: match self.tune {
                TuneArg::Random => Tune::Random,
                TuneArg::Scan => Tune::Scan,
                TuneArg::Size => Tune::Size,
                TuneArg::Reference => Tune::Reference,
            },
            variant: self.variant.clone(),
            overwrite: self.overwrite,
            jobs: self.jobs,
            memory: None,
            features: None,
            resume: None,
            checksums: !self.no_checksums,
            types: vec![],
            images: 0,
        }
    }
}

/// Parses the size of a chunk: `T,C,Z,Y,X`, where X may be 0, for the strips of TIFF.
fn parse_chunk(text: &str) -> Result<[usize; 5], String> {
    if let Some((before, width)) = text.rsplit_once(',')
        && width.trim() == "0"
    {
        let [t, c, z, y, _] = parse_tczyx(&format!("{before},1")).map_err(|_| no_chunk(text))?;
        return Ok([t, c, z, y, 0]);
    }
    parse_tczyx(text).map_err(|_| no_chunk(text))
}

fn no_chunk(text: &str) -> String {
    format!(
        "{text:?} is not five positive numbers T,C,Z,Y,X, such as 1,1,1,256,256; X may be 0, for strips of Y rows in TIFF"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_may_be_as_wide_as_the_image() {
        assert_eq!(parse_chunk("1,2,3,4,5"), Ok([1, 2, 3, 4, 5]));
        assert_eq!(parse_chunk("1, 1,1,16, 0"), Ok([1, 1, 1, 16, 0]));
        for wrong in ["1,1,1,0,0", "0,1,1,16,16", "1,1,1,16", "1,1,16,0", "1,1,1,1,16,0", "0", ""] {
            assert!(parse_chunk(wrong).unwrap_err().contains("X may be 0"), "{wrong}");
        }
    }
}
