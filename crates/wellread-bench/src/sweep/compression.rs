//! Codecs: the size of the images with each in each format, and the cost in writing and reading.
//!
//! `compressed_by` names the place of a format's codec, because that decides what a read has to decompress. A
//! `chunk` is a Zarr chunk or a strip of a TIFF. A `container` has the values of a column (a page of a Parquet
//! column, a block of a database), and a `file` has an image. The same images at the same level stand side by
//! side in one table. Page cache warm: a cold one measures the disk, which `storage` does.

use super::sets::{OutOfTime, lacking, prepare};
use crate::choices::{CompressedBy, Operation};
use crate::core::judge::{Judge, Ranked, ranked};
use crate::core::series::{Series, by_median, series};
use crate::core::variants::{self, Keys, Results, Unavailable, Variant};
use crate::core::words::number;
use crate::core::{Benchmark, Session};
use crate::data::FormatSet;
use crate::storage;
use anyhow::Result;
use std::rc::Rc;
use wellread_report::{Cell, Finding, Severity, Table};
use wellread_store::{Compression, WriteOptions};

/// The sweep's registration.
pub static BENCHMARK: Benchmark = Benchmark {
    name: "storage_compression",
    about: "codecs in every format: size, write, read whole, read at random; compressed by chunk, container or file",
    run,
    transforms: |_| vec![],
    headline: &["seconds", "images_per_s", "bits_per_pixel", "compression_ratio"],
    findings,
};

/// Codecs in the order of tables and figures.
pub const CODECS: [Compression; 5] =
    [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(3), Compression::Zstd(6)];
/// The codec at which formats are compared with each other and with no codec.
const COMPARED: Compression = Compression::Zstd(3);
const OPERATIONS: [Operation; 3] = [Operation::Write, Operation::ReadAll, Operation::ReadRandom];

/// The images in all formats with one codec.
struct Setting {
    compression: Compression,
    options: WriteOptions,
    sets: Vec<FormatSet>,
}

/// Where a format puts its codec.
fn compressed_by(format: &str) -> CompressedBy {
    match format {
        "image-folder" => CompressedBy::File,
        "ome-zarr" | "tiff" => CompressedBy::Chunk,
        // All others are tables: chunks are values of a column, and the engine compresses columns.
        _ => CompressedBy::Container,
    }
}

/// The name of a codec in the table: the requested one, but for one inside Blosc. That shuffles bits or bytes first
/// and is another thing than the codec alone.
fn called(asked: Compression, codec: Option<&str>) -> String {
    let inside =
        codec.and_then(|codec| codec.strip_prefix("blosc(")).and_then(|codec| codec.split(',').next());
    inside.map_or_else(|| asked.to_string(), |codec| format!("blosc-{}", codec.trim_end_matches(')')))
}

fn run(session: &Session<'_>) -> Result<Results> {
    let images = Rc::new(storage::load_images(session)?);
    let scratch = Rc::new(storage::scratch_sets(session)?);
    let mut settings = Vec::new();
    for compression in CODECS {
        let options = WriteOptions { compression, ..session.write_options.clone() };
        let name = format!("compression-{}", compression.to_string().replace(':', "-"));
        settings.push(Setting { compression, sets: prepare(session, &name, &options)?, options });
    }
    let pixel_bytes = session.prepared.bytes_of_pixels() as f64;
    let (mut variants, mut unavailable) = (Vec::new(), Vec::new());
    for at in 0..session.prepared.sets.len() {
        for setting in &settings {
            let set = &setting.sets[at];
            let keys = |operation: Cell| -> Keys {
                vec![
                    ("format", Cell::from(set.format)),
                    ("compressed_by", compressed_by(set.format).into()),
                    ("compression", Cell::from(called(setting.compression, set.codec.as_deref()))),
                    ("operation", operation),
                    ("codec", set.codec.as_deref().map_or(Cell::Null, Cell::from)),
                ]
            };
            if let Some(reason) = &set.error {
                // One row for all operations.
                unavailable.push(Unavailable { keys: keys(Cell::Null), reason: reason.clone() });
                continue;
            }
            for operation in OPERATIONS {
                let keys = keys(operation.into());
                let (images, scratch) = (images.clone(), scratch.clone());
                variants.push(Variant {
                    peer: false,
                    keys,
                    job: Box::new(move |turn| {
                        let options = &setting.options;
                        let mut measured =
                            storage::perform(session, set, operation, options, &images, &scratch, turn)?;
                        let size = measured.values.iter().find(|v| v.0 == "bytes_on_disk").map(|v| v.1);
                        measured.values.extend(size.map(|bytes| ("compression_ratio", pixel_bytes / bytes)));
                        Ok(measured)
                    }),
                });
            }
        }
    }
    let settings = storage::settings(BENCHMARK.name);
    let mut results = variants::run(session, &settings, variants, unavailable)?;
    results.notes.extend(storage::memory_note(session, "compression sweep, write", &images));
    Ok(results)
}

fn findings(table: &Table, judge: &Judge) -> Vec<Ranked> {
    let late = OutOfTime::of(table, "compression");
    let found = [
        ranked(61, containers_of_chunks(table, judge)),
        ranked(62, codec_read_costs(table, judge)),
        ranked(63, smallest(table, late.not_measured())),
        ranked(64, lacking(table, "compression", "Codecs")),
        ranked(64, late.finding("Codecs")),
    ];
    found.into_iter().flatten().collect()
}

/// Rates of random reads with a codec, per format.
fn random_reads(table: &Table, compression: Compression) -> Vec<Series> {
    let (codec, operation) = (Cell::from(compression.to_string()), Cell::from(Operation::ReadRandom));
    series(table, &["compressed_by"], "images_per_s", |r| {
        table.cell("compression", r) == codec && table.cell("operation", r) == operation
    })
}

/// The same codec in chunks, by the container, in files: the fastest format of each place.
fn containers_of_chunks(table: &Table, judge: &Judge) -> Option<Finding> {
    let sorted = by_median(random_reads(table, COMPARED));
    let first = sorted.first()?;
    let second = sorted.iter().find(|s| s.label != first.label)?;
    let compared = judge.compare(first, second)?;
    let name = |s: &Series| format!("compression by the {} ({})", s.label, s.format);
    let text = if compared.is_clear() {
        format!(
            "At {COMPARED}, {} is read at random {} as fast as {}",
            name(first),
            compared.times(),
            name(second)
        )
    } else {
        let no_verdict = compared.no_verdict(&name(first), &name(second));
        format!(
            "At {COMPARED}: {no_verdict}; the first is {} the second{}",
            compared.times(),
            compared.no_verdict_reason()
        )
    };
    let unit = judge.per_second();
    let each = |s: &Series| format!("{} ({}): {} {unit}", s.format, s.label, number(s.median()));
    Some(Finding::new(Severity::Info, text, sorted.iter().map(each).collect::<Vec<_>>().join("; ")))
}

/// The cost or gain of a codec in reading, per format.
fn codec_read_costs(table: &Table, judge: &Judge) -> Option<Finding> {
    let (plain, packed) = (random_reads(table, Compression::None), random_reads(table, COMPARED));
    let (mut clear, mut open, mut doubt) = (Vec::new(), Vec::new(), String::new());
    for without in &plain {
        let Some(with) = packed.iter().find(|s| s.format == without.format) else { continue };
        let (faster, slower, how) = if without.median() >= with.median() {
            (without, with, "uncompressed".to_owned())
        } else {
            (with, without, format!("with {COMPARED}"))
        };
        let Some(compared) = judge.compare(faster, slower) else { continue };
        if compared.is_clear() {
            clear.push(format!("{}: {how} {} as fast", without.format, compared.times()));
        } else {
            open.push(without.format.clone());
            doubt = compared.no_verdict_reason();
        }
    }
    let undecided = format!("no difference that can be told in {}", open.join(", "));
    match (clear.is_empty(), open.is_empty()) {
        (true, true) => None,
        (true, false) => Some(Finding::new(
            Severity::Info,
            format!("Reading at random with {COMPARED} or without compression: {undecided}{doubt}"),
            "",
        )),
        (false, all) => Some(Finding::new(
            Severity::Info,
            format!("Reading at random with {COMPARED} or without compression: {}", clear.join("; ")),
            if all { String::new() } else { undecided },
        )),
    }
}

/// The smallest set, and the smallest of each codec; with those that were not measured.
fn smallest(table: &Table, not_measured: Option<String>) -> Option<Finding> {
    // The same in every row of a set, whichever operations there was time for.
    let of = |column: &str| series(table, &["compression"], column, |_| true);
    let mut sorted = by_median(of("bits_per_pixel"));
    sorted.reverse();
    let first = sorted.first()?;
    let ratio =
        of("compression_ratio").into_iter().find(|s| s.format == first.format && s.label == first.label)?;
    let mut codecs: Vec<String> = CODECS.iter().map(ToString::to_string).collect();
    for Series { label, .. } in &sorted {
        if !codecs.contains(label) {
            codecs.push(label.clone());
        }
    }
    let each = |codec: &String| {
        let best = sorted.iter().find(|s| s.label == *codec)?;
        Some(format!("{codec}: {:.2} bits ({})", best.median(), best.format))
    };
    let among = if not_measured.is_some() { "among the codecs that were measured" } else { "in the sweep" };
    let open =
        not_measured.map_or(String::new(), |which| format!(" Not measured for want of time: {which}."));
    Some(Finding::new(
        Severity::Info,
        format!(
            "Smallest {among} is {} with {}: {:.2} bits per pixel, the pixels being {:.2} times as large",
            first.format,
            first.label,
            first.median(),
            ratio.median()
        ),
        format!(
            "Smallest of each codec: {}.{open}",
            codecs.iter().filter_map(each).collect::<Vec<_>>().join("; ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellread_report::row;

    fn table(zarr: f64, rounds: usize) -> Table {
        let mut table = Table::new(BENCHMARK.name);
        for (format, by, codec, rate, bits) in [
            ("ome-zarr", "chunk", "zstd:3", zarr, 7.0),
            ("ome-zarr", "chunk", "none", 200.0, 16.1),
            ("ome-zarr", "chunk", "blosc-lz4", 300.0, 10.0),
            ("parquet", "container", "zstd:3", 100.0, 7.2),
            ("parquet", "container", "none", 300.0, 16.0),
        ] {
            for run in 0..rounds {
                for operation in ["read_random", "read_all"] {
                    table.push(row![
                        ("format", format),
                        ("compressed_by", by),
                        ("compression", codec),
                        ("operation", operation),
                        ("run", run),
                        ("verified", true),
                        ("images_per_s", rate * (1.0 + 0.001 * run as f64)),
                        ("bits_per_pixel", bits),
                        ("compression_ratio", 16.0 / bits)
                    ]);
                }
            }
        }
        table.push(row![
            ("format", "tiff"),
            ("compression", "lz4"),
            ("status", "unavailable"),
            ("reason", "TIFF has no LZ4")
        ]);
        table
    }

    fn texts(table: &Table, noise: f64) -> Vec<String> {
        findings(table, &Judge::new(1, Some(noise))).into_iter().map(|f| f.finding.text).collect()
    }

    #[test]
    fn sentences_say_what_the_statistics_allow() {
        let said = texts(&table(400.0, 7), 0.05);
        assert!(said[0].contains("by the chunk (ome-zarr) is read at random 4"), "{said:?}");
        assert!(
            said[1].contains("ome-zarr: with zstd:3") && said[1].contains("parquet: uncompressed"),
            "{said:?}"
        );
        assert!(said[2].contains("ome-zarr with zstd:3: 7.00 bits"), "{said:?}");
        assert!(said[3].contains("lz4 in tiff"), "{said:?}");
        let noisy = texts(&table(400.0, 7), 9.0);
        assert!(
            noisy[0].contains("cannot be told apart") && noisy[1].contains("no difference that can be told"),
            "{noisy:?}"
        );
        let early = texts(&table(400.0, 2), 0.0);
        assert!(early[0].contains("too early") && !early[0].contains('–'), "{early:?}");
    }

    #[test]
    fn the_smallest_names_codecs_that_there_was_no_time_for() {
        let mut short = table(400.0, 7);
        let late = format!("{}: storage_compression had 1 s", variants::LEFT_OUT);
        short.push(row![
            ("format", "parquet"),
            ("compression", "zstd:6"),
            ("operation", "read_all"),
            ("status", "unavailable"),
            ("reason", late.as_str())
        ]);
        let found = findings(&short, &Judge::new(1, Some(0.05)));
        let Finding { text, detail, .. } = &found[2].finding;
        assert!(
            text.starts_with("Smallest among the codecs that were measured is ome-zarr with zstd:3"),
            "{text}"
        );
        assert!(detail.ends_with(". Not measured for want of time: zstd:6 in parquet."), "{detail}");
        assert_eq!(
            found[3].finding.text, "Codecs of the sweep that are not available: lz4 in tiff",
            "what there was no time for is no codec that a format lacks"
        );
        assert_eq!(
            found[4].finding.text,
            "Codecs of the sweep that were not measured for want of time: zstd:6 in parquet"
        );
        let whole = findings(&table(400.0, 7), &Judge::new(1, Some(0.05)));
        assert_eq!(whole.len(), 4);
        let Finding { text, detail, .. } = &whole[2].finding;
        assert!(text.starts_with("Smallest in the sweep is ome-zarr with zstd:3"), "{text}");
        assert!(!detail.contains("Not measured"), "{detail}");
    }

    #[test]
    fn a_codec_inside_blosc_is_not_called_as_the_codec_alone() {
        assert_eq!(called(Compression::Lz4, Some("blosc(lz4, bitshuffle)")), "blosc-lz4");
        assert_eq!(called(Compression::Lz4, Some("lz4_raw")), "lz4");
        assert_eq!(called(Compression::Zstd(3), Some("zstd")), "zstd:3");
        assert_eq!(called(Compression::Lz4, None), "lz4");
        let found = findings(&table(400.0, 7), &Judge::new(1, Some(0.05)));
        let detail = &found[2].finding.detail;
        assert!(detail.contains("blosc-lz4: 10.00 bits (ome-zarr)"), "{detail}");
    }

    #[test]
    fn every_format_of_the_build_puts_its_codec_somewhere() {
        let of = |name: &str| compressed_by(name);
        assert_eq!(of("parquet"), CompressedBy::Container);
        assert_eq!(of("ome-arrow-dataset"), CompressedBy::Container);
        assert_eq!(of("ome-zarr"), CompressedBy::Chunk);
        assert_eq!(of("image-folder"), CompressedBy::File);
    }
}
