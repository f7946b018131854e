//! Marks of figures have the values of their tables: what is drawn is what was measured.

use wellread_report::figures::figure;
use wellread_report::number::Unit;
use wellread_report::{ReportInput, Row, Table, row};

/// The lines and rows of a figure: a column and two of its values.
type Compared = (&'static str, [&'static str; 2]);

const FORMATS: Compared = ("format", ["tiff", "parquet"]);
const FRAMEWORKS: Compared = ("framework", ["pytorch", "candle"]);
const IMAGES: Unit = Unit::PerSecond("images");

/// A quantity of a figure: its column, its unit, and its values in three rounds of each that is compared.
type Quantity = (&'static str, Unit, [[f64; 3]; 2]);

/// The texts of a figure's marks.
fn titles(svg: &str) -> Vec<&str> {
    svg.split("<title>").skip(1).filter_map(|rest| Some(rest.split_once("</title>")?.0)).collect()
}

/// A table of these quantities, every configuration in three rounds.
fn table(name: &str, compared: Compared, configurations: &[Row], quantities: &[Quantity]) -> Table {
    let mut table = Table::new(name);
    for (which, value) in compared.1.into_iter().enumerate() {
        for configuration in configurations {
            for (round, run) in (0..3).enumerate() {
                let mut row = row![(compared.0, value), ("run", run)];
                row.extend(configuration.clone());
                row.extend(quantities.iter().map(|of| (of.0.to_owned(), of.2[which][round].into())));
                table.push(row);
            }
        }
    }
    table
}

/// The figures of the four tracks and of inference. The median of three rounds is not their mean, and neither the first
/// nor the last.
#[test]
fn figures_say_the_medians_of_their_tables() {
    let loaders = |workers: i32| row![("batch_size", 4), ("workers", workers)];
    let figures: [(&str, Compared, Vec<Row>, &[Quantity]); 5] = [
        (
            "dataset",
            FORMATS,
            vec![row![("access", "random"), ("transform", "none"), ("cache", "none")]],
            &[
                ("p50_s", Unit::Seconds, [[4e-3, 2e-3, 1e-3], [9e-3, 7e-3, 3e-3]]),
                ("samples_per_sec", IMAGES, [[250.0, 520.0, 990.0], [110.0, 140.0, 330.0]]),
                ("open_s", Unit::Seconds, [[0.031, 0.052, 0.094], [0.21, 0.35, 0.48]]),
            ],
        ),
        (
            "dataloader",
            FORMATS,
            vec![loaders(0), loaders(2)],
            &[
                ("samples_per_sec", IMAGES, [[1250.0, 1520.0, 1990.0], [2110.0, 2140.0, 2330.0]]),
                ("first_batch_s", Unit::Seconds, [[0.031, 0.052, 0.094], [0.21, 0.35, 0.48]]),
                ("scaling_efficiency", Unit::Fraction, [[0.51, 0.62, 0.97], [0.71, 0.83, 0.99]]),
            ],
        ),
        (
            "loop",
            FORMATS,
            vec![row![("model", "linear-probe"), ("mode", "train")]],
            &[
                ("step_p50_s", Unit::Seconds, [[4e-3, 2e-3, 1e-3], [9e-3, 7e-3, 3e-3]]),
                ("data_wait_fraction", Unit::Fraction, [[0.11, 0.24, 0.59], [0.41, 0.53, 0.87]]),
                ("images_per_sec", IMAGES, [[1250.0, 1520.0, 1990.0], [2110.0, 2140.0, 2330.0]]),
            ],
        ),
        (
            "conversion",
            FORMATS,
            vec![row![("framework", "candle"), ("path", "copy")]],
            &[
                ("numpy_p50_s", Unit::Seconds, [[41e-6, 22e-6, 13e-6], [95e-6, 76e-6, 37e-6]]),
                ("conversion_p50_s", Unit::Seconds, [[6.1e-6, 4.2e-6, 1.3e-6], [9.4e-6, 7.5e-6, 3.6e-6]]),
                ("torch_p50_s", Unit::Seconds, [[51e-6, 32e-6, 23e-6], [98e-6, 79e-6, 38e-6]]),
                ("conversion_overhead_pct", Unit::Percent, [[11.0, 16.0, 29.0], [31.0, 38.0, 49.0]]),
            ],
        ),
        (
            "inference",
            FRAMEWORKS,
            vec![row![("model", "resnet50"), ("batch_size", 4)]],
            &[
                ("latency_p50_s", Unit::Seconds, [[4e-3, 2e-3, 1e-3], [9e-3, 7e-3, 3e-3]]),
                ("throughput_ips", IMAGES, [[1250.0, 1520.0, 1990.0], [2110.0, 2140.0, 2330.0]]),
            ],
        ),
    ];
    for (name, compared, configurations, quantities) in figures {
        let table = table(name, compared, &configurations, quantities);
        let svg = figure(&table, &ReportInput::default()).expect("a figure").svg();
        let titles = titles(&svg);
        for (column, unit, values) in quantities {
            for (value, rounds) in compared.1.into_iter().zip(values) {
                let median = unit.format(rounds[1]);
                let said = titles.iter().any(|title| title.contains(value) && title.contains(&median));
                assert!(said, "{name}: no {column} of {median} of {value} in {titles:#?}");
            }
        }
    }
}
