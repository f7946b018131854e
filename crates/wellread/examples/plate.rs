//! From a plate as the microscope wrote it to a falling loss: crops around nuclei train a logistic regression.
//!
//! ```text
//! wellread generate plate --plate 4x6 --fields 2 --cells-table
//! cargo run --release -p wellread --example plate -- plate/images plate/cells.parquet [COLUMN]
//! ```
//!
//! The images are a folder of an Opera Phenix, an ImageXpress or any set. The table has a row for each cell, and COLUMN
//! (unless given, `Metadata_Treated`) is 0 or 1. The model sees the mean and the deviation of each channel of a crop.

use wellread::store::cells::CellOptions;
use wellread::store::features;
use wellread::{Cache, Dataset, Grouping, Loader};

/// Rows and columns of a crop.
const SIDE: usize = 64;
/// The factor of the camera's counts.
const SCALE: f32 = 1.0 / 16_000.0;
/// Images that are mixed at a time, and kept.
const MIXED: usize = 16;

/// Mean and deviation of each channel of a crop, and a 1.
fn seen(crop: &[f32]) -> Vec<f32> {
    let mut values = vec![1.0];
    for channel in crop.chunks_exact(SIDE * SIDE) {
        let n = channel.len() as f32;
        let mean = channel.iter().sum::<f32>() / n;
        let variance = channel.iter().map(|pixel| (pixel - mean) * (pixel - mean)).sum::<f32>() / n;
        values.extend([mean, variance.sqrt()]);
    }
    values
}

/// How likely the crop is of class 1.
fn predicted(weights: &[f32], seen: &[f32]) -> f32 {
    let sum: f32 = weights.iter().zip(seen).map(|(weight, value)| weight * value).sum();
    1.0 / (1.0 + (-sum).exp())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "give the images and the table of their cells, and a column of 0 and 1 if you like";
    let (images, table) = args.next().zip(args.next()).ok_or(usage)?;
    let column = args.next().unwrap_or_else(|| "Metadata_Treated".to_owned());

    let sites = Dataset::open(&images)?.with_cache(&"lru:2GiB".parse::<Cache>()?)?;
    println!("{} sites of {} (TCZYX)", sites.len(), sites.row_info(0)?.shape);
    let cells = sites.cells(&table, &CellOptions { size: [SIDE, SIDE], ..CellOptions::default() })?;
    let keys = features::keys(cells.store(), &[column])?;
    let classes = keys.iter().map(|class| class.parse::<f32>()).collect::<Result<Vec<f32>, _>>()?;
    // Cells of a well are all in one part.
    let parts = cells.split(&[0.75, 0.25], Some(&Grouping::columns(["Metadata_Well"])), 0)?;
    println!("{} cells: {} to train, {} to test", cells.len(), parts[0].len(), parts[1].len());

    let loader = Loader::builder(&cells)
        .rows(parts[0].clone())
        .batch_size(32)
        .mixed(Grouping::Position, MIXED, 42)
        .workers(2)
        .scale(SCALE)
        .build()?;
    let mut weights = vec![];
    for epoch in 0..10 {
        let (mut total, mut count) = (0.0, 0);
        for batch in &loader {
            let batch = batch?;
            let mut gradient = vec![];
            for (i, &row) in batch.rows().iter().enumerate() {
                let seen = seen(batch.image(i));
                weights.resize(seen.len(), 0.0);
                gradient.resize(seen.len(), 0.0);
                let (class, guess) = (classes[row], predicted(&weights, &seen).clamp(1e-6, 1.0 - 1e-6));
                total -= class * guess.ln() + (1.0 - class) * (1.0 - guess).ln();
                count += 1;
                for (sum, value) in gradient.iter_mut().zip(&seen) {
                    *sum += (guess - class) * value / batch.len() as f32;
                }
            }
            for (weight, slope) in weights.iter_mut().zip(&gradient) {
                *weight -= 2.0 * slope;
            }
        }
        println!("epoch {epoch}: loss {:.3}", total / count as f32);
    }

    let test = Loader::builder(&cells).rows(parts[1].clone()).batch_size(32).scale(SCALE).build()?;
    let mut right = 0;
    for batch in &test {
        let batch = batch?;
        for (i, &row) in batch.rows().iter().enumerate() {
            let is_one = predicted(&weights, &seen(batch.image(i))) > 0.5;
            right += usize::from(is_one == (classes[row] > 0.5));
        }
    }
    println!("wells that were not trained on: {right} of {} cells right", parts[1].len());
    Ok(())
}
