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

/// The mean loss of each epoch, and how many cells of other wells are right, of how many.
struct Outcome {
    losses: Vec<f32>,
    right: usize,
    of: usize,
}

/// Trains on the cells of three quarters of the wells; those of the others judge.
fn train(sites: &Dataset, table: &str, column: String) -> Result<Outcome, Box<dyn std::error::Error>> {
    let cells = sites.cells(table, &CellOptions { size: [SIDE, SIDE], ..CellOptions::default() })?;
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
    let (mut weights, mut losses) = (vec![], vec![]);
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
        let loss = total / count as f32;
        println!("epoch {epoch}: loss {loss:.3}");
        losses.push(loss);
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
    Ok(Outcome { losses, right, of: parts[1].len() })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "give the images and the table of their cells, and a column of 0 and 1 if you like";
    let (images, table) = args.next().zip(args.next()).ok_or(usage)?;
    let column = args.next().unwrap_or_else(|| "Metadata_Treated".to_owned());
    let sites = Dataset::open(&images)?.with_cache(&"lru:2GiB".parse::<Cache>()?)?;
    println!("{} sites of {} (TCZYX)", sites.len(), sites.row_info(0)?.shape);
    let Outcome { losses, right, of } = train(&sites, &table, column)?;
    if let (Some(first), Some(last)) = (losses.first(), losses.last()) {
        println!("loss {first:.3} of the first epoch, {last:.3} of the last");
    }
    println!("wells that were not trained on: {right} of {of} cells right");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use wellread::{MemoryStore, PixelType, Shape};

    /// Wells of a site each: the cells of every other one are bright.
    #[test]
    fn the_loss_falls_and_other_wells_are_told() {
        let mut store = MemoryStore::new("plate");
        let mut text = "ImageName,x,y,Metadata_Well,Metadata_Treated\n".to_owned();
        let shape = Shape([1, 1, 1, 96, 96]);
        for well in 0..24u16 {
            let level: u16 = if well % 2 == 1 { 13_000 } else { 1000 };
            let pixels = (0..shape.pixels()).flat_map(|i| (level + (i % 7) as u16).to_le_bytes()).collect();
            store.push(format!("site {well}"), shape, PixelType::U16, pixels).unwrap();
            for at in (30..62).step_by(2) {
                writeln!(text, "site {well},{at},{at},A{:02},{}", well + 1, well % 2).unwrap();
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("cells.csv");
        std::fs::write(&table, text).unwrap();
        let sites = Dataset::from_store(Box::new(store));
        let outcome = train(&sites, table.to_str().unwrap(), "Metadata_Treated".to_owned()).unwrap();
        let Outcome { losses, right, of } = outcome;
        assert_eq!(losses.len(), 10);
        assert!(losses[9] < losses[0] / 2.0, "{losses:?}");
        assert!(of > 0 && right == of, "{right} of {of}");
    }
}
