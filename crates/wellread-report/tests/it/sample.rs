//! A report's input as the benchmarks make it, with invented figures: every table, a format that is
//! unavailable, one that is not verified.

use wellread_report::{Finding, ReportInput, Row, Samples, Severity, Table, Thumbnail, row};

/// Formats with an invented time of one image in seconds.
const FORMATS: [(&str, f64); 7] = [
    ("parquet", 21e-6),
    ("parquet-duckdb", 3.1e-3),
    ("ome-arrow-dataset", 48e-6),
    ("lance", 110e-6),
    ("tiff", 34e-6),
    ("ome-zarr", 230e-6),
    ("image-folder", 160e-6),
];

/// Numbers around 1, the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1.0 + 0.06 * ((self.0 >> 40) as f64 / (1u64 << 24) as f64 - 0.5)
    }
}

/// `row` with the interval of `quantity`.
fn with_interval(mut row: Row, quantity: &str, value: f64, half: f64) -> Row {
    row.extend(row![
        (quantity, value),
        (format!("{quantity}_ci_low"), value * (1.0 - half)),
        (format!("{quantity}_ci_high"), value * (1.0 + half)),
    ]);
    row
}

fn start(format: &str, run: usize) -> Row {
    row![
        ("format", format),
        ("run", run),
        ("seed", 42),
        ("timestamp", "2026-11-21T08:00:00Z"),
        ("verified", format != "image-folder")
    ]
}

fn unavailable(table: &mut Table) {
    table.push(row![
        ("format", "vortex"),
        ("status", "unavailable"),
        ("reason", "this build has no Vortex engine; build with --features vortex"),
    ]);
}

fn sweep_compression(table: &mut Table, noise: &mut Noise, run: usize, i: usize, format: &str, t: f64) {
    let place = match format {
        "tiff" | "ome-zarr" => "chunk",
        "image-folder" => "file",
        _ => "container",
    };
    for (codec, bits, slower) in [
        ("none", 16.0, 1.0),
        ("lz4", 11.0, 1.2),
        ("zstd:1", 8.6, 1.9),
        ("zstd:3", 8.1, 2.0),
        ("zstd:6", 7.7, 2.1),
    ] {
        for (operation, times) in [("read_random", 1.4), ("read_all", 1.0), ("write", 20.0)] {
            let mut r = start(format, run);
            r.extend(row![("compressed_by", place), ("compression", codec), ("operation", operation)]);
            if codec == "lz4" && place != "container" {
                r.extend(row![("status", "unavailable"), ("reason", "there is no LZ4")]);
            } else {
                let rate = noise.next() / (t * times * slower);
                r.push(("bits_per_pixel".into(), (bits + 0.2 * i as f64).into()));
                r = with_interval(r, "images_per_s", rate, 0.03);
            }
            table.push(r);
        }
    }
}

fn sweep_layout(table: &mut Table, noise: &mut Noise, run: usize, format: &str, t: f64) {
    for (layout, amplified) in
        [("z-plane", [1.0f64, 1.0, 60.0]), ("block", [1.0, 16.0, 7.5]), ("volume", [1.0, 20.0, 80.0])]
    {
        for (i, operation) in ["read_volume", "read_plane", "read_sub_volume"].into_iter().enumerate() {
            let mut r = start(format, run);
            r.extend(row![("layout", layout), ("operation", operation)]);
            if format == "image-folder" {
                r.extend(row![("status", "unavailable"), ("reason", "PNG holds one plane")]);
            } else {
                r.extend(row![
                    ("read_amplification", amplified[i]),
                    ("bits_per_pixel", 8.0 + amplified[1] / 20.0)
                ]);
                r = with_interval(r, "reads_per_s", noise.next() / (t * 20.0 * amplified[i].sqrt()), 0.04);
            }
            table.push(r);
        }
    }
}

/// All tables.
pub fn tables() -> Vec<Table> {
    let mut noise = Noise(1);
    let mut storage = Table::new("storage");
    let mut compression = Table::new("storage_compression");
    let mut layout = Table::new("storage_layout");
    let mut dataset = Table::new("dataset");
    let mut loader = Table::new("dataloader");
    let mut model = Table::new("loop");
    let mut conversion = Table::new("conversion");
    for run in 0..5 {
        for (i, (format, t)) in FORMATS.into_iter().enumerate() {
            sweep_compression(&mut compression, &mut noise, run, i, format, t);
            sweep_layout(&mut layout, &mut noise, run, format, t);
            for (operation, cache, times) in [
                ("write", None, 12.0),
                ("read_all", Some("warm"), 1.0),
                ("read_all", Some("cold"), 4.0),
                ("read_random", Some("warm"), 1.4),
                ("read_random", Some("cold"), 9.0),
                ("open", Some("warm"), 20.0),
                ("open", Some("cold"), 45.0),
            ] {
                let seconds = t * times * noise.next() * 1000.0;
                let mut r = start(format, run);
                r.extend(row![
                    ("operation", operation),
                    ("cache", cache),
                    ("bytes_on_disk", 10_240_000 - i * 600_000),
                    ("bits_per_pixel", 8.2 - i as f64 * 0.5)
                ]);
                if operation == "open" {
                    storage.push(with_interval(r, "seconds", seconds / 1000.0, 0.05));
                } else {
                    r.extend(row![("seconds", seconds)]);
                    storage.push(with_interval(r, "images_per_s", 1000.0 / seconds, 0.03));
                }
            }
            for (access, a) in [("sequential", 1.0), ("random", 1.5), ("grouped", 1.1)] {
                for (transform, f) in [("none", 0.0), ("normalize", 4e-6), ("augment", 30e-6)] {
                    for cache in ["none", "memory"] {
                        let p50 = (if cache == "memory" { 3e-6 } else { t * a } + f) * noise.next();
                        let mut r = start(format, run);
                        r.extend(row![
                            ("access", access),
                            ("transform", transform),
                            ("cache", cache),
                            ("min_s", p50 * 0.8),
                            ("p95_s", p50 * 1.6),
                            ("p99_s", p50 * 3.5),
                            ("max_s", p50 * 9.0),
                            ("num_samples", 1000),
                            ("open_s", t * 20.0),
                            ("peak_rss_mb", 30.0 + t * 1e5 + if cache == "memory" { 40.0 } else { 0.0 })
                        ]);
                        let r = with_interval(r, "p50_s", p50, 0.03);
                        dataset.push(with_interval(r, "samples_per_sec", 1.0 / p50, 0.03));
                    }
                }
            }
            for batch in [1, 4, 16] {
                for workers in [0, 2, 4] {
                    let speed = 1.0 + f64::from(workers).sqrt() * 0.7 * (1.0 - i as f64 * 0.1);
                    let rate = speed / t / (1.0 + 3.0 / f64::from(batch)) * noise.next();
                    let mut r = start(format, run);
                    r.extend(row![
                        ("batch_size", batch),
                        ("workers", workers),
                        ("p50_s", f64::from(batch) / rate)
                    ]);
                    let r = with_interval(r, "samples_per_sec", rate, 0.04);
                    let r = with_interval(
                        r,
                        "first_batch_s",
                        t * 30.0 * (1.0 + f64::from(workers) * 0.3) * noise.next(),
                        0.1,
                    );
                    loader.push(with_interval(
                        r,
                        "scaling_efficiency",
                        speed / f64::from(workers.max(1)),
                        0.05,
                    ));
                }
            }
            for (mode, compute) in [("train", 9e-3), ("inference", 2.5e-3)] {
                let wait = 16.0 * t * 0.4;
                let mut r = start(format, run);
                r.extend(row![
                    ("model", "embedding_cnn"),
                    ("mode", mode),
                    ("batch_size", 16),
                    ("loss", 0.31)
                ]);
                let r = with_interval(r, "step_p50_s", (compute + wait) * noise.next(), 0.02);
                let r = with_interval(r, "data_wait_fraction", wait / (compute + wait) * noise.next(), 0.1);
                let r = with_interval(r, "accelerator_utilisation", compute / (compute + wait), 0.05);
                model.push(with_interval(r, "images_per_sec", 16.0 / (compute + wait), 0.02));
            }
            for (path, c, bytes) in [("copy", 6e-6, 40_000), ("zero_copy", 0.2e-6, 0)] {
                let mut r = start(format, run);
                r.extend(row![("path", path), ("copied_bytes", bytes)]);
                let r = with_interval(r, "numpy_p50_s", t * noise.next(), 0.03);
                let r = with_interval(r, "conversion_p50_s", c * noise.next(), 0.03);
                let r = with_interval(r, "torch_p50_s", t + c, 0.03);
                conversion.push(with_interval(r, "conversion_overhead_pct", 100.0 * c / (t + c), 0.05));
            }
        }
    }
    let mut all = vec![storage, compression, layout, dataset, loader, model, conversion];
    all.iter_mut().for_each(unavailable);
    all
}

/// Single times of five runs: slow at first, with a second bump of those that lay on the disk and rare slow ones.
fn samples(name: &str, key: &str, values: [&str; 2]) -> Samples {
    let mut noise = Noise(7);
    let mut samples = Samples::new(name);
    for run in 0..5 {
        for (format, t) in FORMATS {
            for (v, value) in values.into_iter().enumerate() {
                let times = (0..200).map(|i| {
                    let first = if i < 10 { 4.0 - 0.3 * f64::from(i) } else { 1.0 };
                    let kind = if (i * 7 + run) % 11 == 0 { 2.5 } else { 1.0 };
                    let rare = if i % 97 == 96 { 12.0 } else { 1.0 };
                    t * (1.0 + v as f64) * first * kind * rare * noise.next().powi(3)
                });
                let which = row![("format", format), (key, value), ("run", run)];
                samples.push(which, times.collect());
            }
        }
    }
    samples
}

/// A report's input with every field filled.
pub fn input() -> ReportInput {
    let mut input = ReportInput {
        title: "How fast are these images read?".into(),
        description: "1,000 synthetic cell images in seven formats: written, read, loaded in batches and fed to a \
             small model. The figures are invented: this shows what a report looks like."
            .into(),
        generated: "2026-11-21 08:00 UTC".into(),
        findings: vec![
            Finding::new(
                Severity::Good,
                "Parquet is fastest here: 47,600 images/s read in random order, 1.6 (1.5–1.7) times TIFF.",
                "Median of 5 runs, warm page cache; the difference is far above the noise floor of 2.1 %.",
            ),
            Finding::new(
                Severity::Caution,
                "With OME-Zarr, 37 % (35–39 %) of an inference step is spent waiting for data.",
                "Significant but acceptable. Two workers bring it below 30 %.",
            ),
            Finding::new(Severity::Good, "Conversion is not your bottleneck: 0.9 % of the time to a tensor.", "Without copy."),
            Finding::new(Severity::Bad, "image-folder delivered pixels that differ from the source.", "JPEG is lossy: use PNG."),
            Finding::new(Severity::Info, "Next: measure on your own images with --input PATH.", ""),
        ],
        configuration: vec![
            ("Images", "1,000 synthetic (cells), 1 × 100 × 100, uint8").into(),
            ("Formats", "parquet, parquet-duckdb, ome-arrow-dataset, lance, tiff, ome-zarr, image-folder; vortex unavailable").into(),
            ("Repeats", "5, interleaved").into(),
            ("Seed", 42).into(),
            ("Pixel checksum (SHA-256)", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08").into(),
        ],
        environment: vec![
            ("CPU", "AMD EPYC 9R14, 2 cores, AVX-512").into(),
            ("Memory", "7.6 GB").into(),
            ("Disk", "ext4 on virtio").into(),
            ("System", "Linux 6.1, x86-64").into(),
            ("wellread", "0.1.0 (commit 15c6fea)").into(),
        ],
        machine: "AMD EPYC 9R14, 2 cores, ext4, Linux 6.1".into(),
        images: "1,000 synthetic cell images, 100 × 100, uint8 (invented figures)".into(),
        noise_floor: Some(0.021),
        warnings: vec!["Another process used 30 % of a core during run 3.".into()],
        thumbnails: (0..4).map(|i| Thumbnail::from_png(format!("row {i}, channel 0"), &gradient(i))).collect(),
        commands: vec![
            "wellread generate data --images 1000 --size 100x100 --dtype uint8 --kind cells --formats all --seed 42".into(),
            "wellread bench all --input data --repeats 5 --seed 42 --out results".into(),
        ],
        tables: tables(),
        samples: vec![samples("dataset", "access", ["sequential", "random"]), samples("dataloader", "workers", ["0", "2"])],
        ..ReportInput::default()
    };
    input.details.insert("seed".into(), 42.into());
    input.details.insert("versions".into(), serde_json::json!({"wellread": "0.1.0"}));
    input
}

/// A small PNG with something in it.
fn gradient(phase: u32) -> Vec<u8> {
    let mut pixmap = resvg::tiny_skia::Pixmap::new(96, 96).expect("a small picture");
    for (i, pixel) in pixmap.pixels_mut().iter_mut().enumerate() {
        let (x, y) = ((i % 96) as f32 - 20.0 - phase as f32 * 18.0, (i / 96) as f32 - 48.0);
        let v = (255.0 * (-(x * x + y * y) / 500.0).exp()) as u8;
        *pixel = resvg::tiny_skia::PremultipliedColorU8::from_rgba(v, v, v, 255).expect("grey is opaque");
    }
    pixmap.encode_png().expect("a PNG in memory")
}

/// The facts that figures need beside a table.
#[allow(dead_code, reason = "the example that shares this file does not use it")]
pub fn about() -> ReportInput {
    ReportInput {
        machine: "a machine".into(),
        images: "images".into(),
        noise_floor: Some(0.3),
        ..ReportInput::default()
    }
}
