//! A supervised loop in Rust: sites and their profiles train a small network to say how many cells a site has. Each well is left out of
//! one training, and judges it.
//!
//! ```text
//! cargo run --release -p wellread-train --example supervised -- [FOLDER] [EPOCHS]
//! ```
//!
//! FOLDER has `images` and `profiles.parquet`, as NF1's Cell Painting images come: fifteen files are five sites of three channels, each of
//! its own well. Without it, the example generates images in memory. `examples/nf1_supervised.py` is this in PyTorch, without a test.
//!
//! The last lines set the error in wells that were not trained on beside chance, which is the mean of the wells that were. Five wells are
//! too few to tell a network from chance.

mod common;

use anyhow::{Context as _, Result, bail, ensure};
use common::{channels_last, nf1_sites};
use std::collections::BTreeSet;
use std::path::Path;
use wellread_image::synthetic::{Kind, Spec, image};
use wellread_image::{PixelType, Shape};
use wellread_loader::{Dataset, Loader, LoaderBuilder, MemoryStore};
use wellread_store::words::{counted, there_are};
use wellread_store::{features, profiles};
use wellread_train::net::{Adam, Cnn, CnnSpec, Loss, NormKind, Tensor};

/// The column of a profile that names a file of its site, and the one with the number of cells that CellProfiler found.
const FILE: &str = "Image_FileName_DAPI";
const CELLS: &str = "Metadata_number_of_singlecells";
/// Rows and columns that sites are resized to.
const SIDE: usize = 192;
/// Sites of a batch.
const BATCH: usize = 8;
/// Learning rate of the first epoch, from where it falls to 0.
const RATE: f64 = 1e-2;
/// Epochs between two lines of the loss.
const SHOWN: usize = 20;

/// Sites with their wells and numbers of cells, and the rows and columns that they are resized to.
struct Sites {
    images: Dataset,
    wells: Vec<String>,
    cells: Vec<f32>,
    side: usize,
}

/// The sites in a folder of NF1, with what their profiles say.
fn opened(folder: &Path) -> Result<Sites> {
    let table = folder.join("profiles.parquet");
    let images = nf1_sites(folder)?;
    let names = [CELLS.to_owned()];
    let (columns, _) = profiles::join(images.store(), &table, FILE, &names)?;
    let images = images.with_columns(columns)?;
    let mut cells = vec![];
    for (row, values) in features::row_values(images.store(), &names)?.into_iter().enumerate() {
        let Some(Some(number)) = values.into_iter().next() else {
            bail!(
                "{}: no number of cells for the site {}. Its profile is the row whose {FILE} is one of its files: add it, \
                 or move the files elsewhere",
                table.display(),
                images.name(row)?
            );
        };
        let no_number = || format!("{}: {CELLS} is {number:?}, which is no number", table.display());
        cells.push(number.parse::<f32>().with_context(no_number)?);
    }
    let wells = features::keys(images.store(), &[features::WELL.to_owned()])?;
    Ok(Sites { images, wells, cells, side: SIDE })
}

/// Images of cells whose numbers are known, two to a well.
fn generated(count: u64) -> Result<Sites> {
    let shape = Shape([1, 3, 1, SIDE, SIDE]);
    let spec = Spec { kind: Kind::Cells, shape, dtype: PixelType::U16, seed: 3 };
    let mut images = MemoryStore::new("generated images");
    let (mut wells, mut cells) = (vec![], vec![]);
    for row in 0..count {
        let made = image(&spec, row)?;
        let labels: BTreeSet<u16> = made.mask.context("images of cells have masks")?.into_iter().collect();
        cells.push(labels.iter().filter(|label| **label > 0).count() as f32);
        wells.push(format!("A{:02}", row / 2 + 1));
        images.push(made.metadata.name, shape, PixelType::U16, made.pixels)?;
    }
    Ok(Sites { images: Dataset::from_store(Box::new(images)), wells, cells, side: SIDE })
}

/// A loader of some sites.
fn loader(sites: &Sites, rows: Vec<usize>) -> LoaderBuilder {
    Loader::builder(&sites.images)
        .rows(rows)
        .resize(sites.side, sites.side)
        .scale_by_percentiles(1.0, 99.8)
        .batch_size(BATCH)
}

/// A network that some sites have trained.
struct Trained {
    net: Cnn,
    /// Mean and deviation of the numbers of cells in these sites.
    mean: f32,
    deviation: f32,
    /// The loss of each epoch.
    losses: Vec<f64>,
}

/// Trains on these sites.
fn train(sites: &Sites, rows: Vec<usize>, epochs: usize) -> Result<Trained> {
    let n = rows.len() as f32;
    let mean = rows.iter().map(|&row| sites.cells[row]).sum::<f32>() / n;
    let deviation = (rows.iter().map(|&row| (sites.cells[row] - mean).powi(2)).sum::<f32>() / n).sqrt();
    ensure!(deviation > 0.0, "all sites of the training have {mean} cells: there is nothing to learn");
    let training = loader(sites, rows).shuffle(42).flip(0.5, 0.5).workers(2).build()?;
    let c_in = training.image_shape().c();
    let spec = CnnSpec { c_in, c_out: 1, width: 16, depth: 2, norm: NormKind::Batch };
    let mut net = Cnn::new(spec, 1)?;
    let mut adam = Adam::new(&net, 0.0);
    let mut losses = vec![];
    for epoch in 0..epochs {
        let rate = RATE * (1.0 - epoch as f64 / epochs as f64);
        let (mut sum, mut seen) = (0.0, 0);
        for batch in &training {
            let batch = batch?;
            let wanted = batch.rows().iter().map(|&row| (sites.cells[row] - mean) / deviation).collect();
            let wanted = Tensor::new(wanted, [batch.len(), 1, 1, 1, 1])?;
            let pass = net.forward(&channels_last(&batch.view(0))?)?;
            let (loss, gradient) = Loss::Mse.of(&pass.output, &wanted)?;
            net.backward(pass, &gradient)?;
            adam.step(&mut net, rate);
            sum += loss * batch.len() as f64;
            seen += batch.len();
        }
        let loss = sum / seen as f64;
        losses.push(loss);
        if epoch % SHOWN == 0 || epoch + 1 == epochs {
            println!("epoch {epoch}: loss {loss:.3}");
        }
    }
    Ok(Trained { net, mean, deviation, losses })
}

/// The numbers of cells in a site whose well was left out. They are what the network says, the true number, and the mean of the sites that
/// trained.
struct Judged {
    said: f32,
    has: f32,
    mean: f32,
}

/// The numbers that a network says of these sites.
fn judged(trained: &Trained, sites: &Sites, rows: Vec<usize>) -> Result<Vec<Judged>> {
    let Trained { net, mean, deviation, .. } = trained;
    let mut all = vec![];
    for batch in &loader(sites, rows).build()? {
        let batch = batch?;
        let said = net.infer(&channels_last(&batch.view(0))?)?;
        for (&row, said) in batch.rows().iter().zip(said.data) {
            all.push(Judged { said: said * deviation + mean, has: sites.cells[row], mean: *mean });
        }
    }
    Ok(all)
}

/// The result of as many trainings as there are wells.
struct Outcome {
    /// The losses of each training.
    losses: Vec<Vec<f64>>,
    /// Sites of the wells that were left out.
    sites: usize,
    /// How far from the number of cells the network is, and the mean of the sites that trained.
    off: f32,
    chance: f32,
    /// Sites of which the network says rightly whether they have more cells than that mean.
    right: usize,
}

/// Leaves out each well once, trains on the others, and judges by it. No well is in both parts.
fn leave_each_well_out(sites: &Sites, epochs: usize) -> Result<Outcome> {
    let wells: BTreeSet<&String> = sites.wells.iter().collect();
    ensure!(wells.len() > 1, "{}: one judges, and the others train", there_are(wells.len(), "well"));
    ensure!(epochs > 0, "0 epochs train nothing: give 1 or more");
    let (mut losses, mut all) = (vec![], vec![]);
    for well in wells {
        println!("without well {well}");
        let (test, training): (Vec<usize>, Vec<usize>) =
            (0..sites.wells.len()).partition(|&row| sites.wells[row] == *well);
        let trained = train(sites, training, epochs)?;
        for site in judged(&trained, sites, test)? {
            println!(
                "well {well}: {:.0} cells told, {} counted, {:.0} by chance",
                site.said, site.has, site.mean
            );
            all.push(site);
        }
        losses.push(trained.losses);
    }
    let n = all.len() as f32;
    let off = all.iter().map(|site| (site.said - site.has).abs()).sum::<f32>() / n;
    let chance = all.iter().map(|site| (site.mean - site.has).abs()).sum::<f32>() / n;
    let right = all.iter().filter(|site| (site.said > site.mean) == (site.has > site.mean)).count();
    Ok(Outcome { losses, sites: all.len(), off, chance, right })
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let sites = match args.next() {
        Some(folder) => opened(Path::new(&folder))?,
        None => generated(10)?,
    };
    let epochs = args.next().map_or(Ok(60), |epochs| epochs.parse())?;
    let shape = sites.images.row_info(0)?.shape;
    println!("{} of {shape} (TCZYX)", counted(sites.images.len(), "site"));
    let Outcome { losses, sites, off, chance, right } = leave_each_well_out(&sites, epochs)?;
    let of_epoch = |epoch: usize| losses.iter().map(|of| of[epoch]).sum::<f64>() / losses.len() as f64;
    let (first, last) = (of_epoch(0), of_epoch(epochs - 1));
    println!(
        "loss {first:.3} of the first epoch, {last:.3} of the last: means of {}",
        counted(losses.len(), "training")
    );
    println!(
        "wells that were not trained on: off by {off:.1} cells; chance, the mean of the other wells, by {chance:.1}"
    );
    println!(
        "more cells than that mean, or fewer: {right} of {sites} sites right; by chance half of them are"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sites with as many bright squares as they have cells, two to a well.
    fn squares(wells: usize) -> Sites {
        let shape = Shape([1, 1, 1, 64, 64]);
        let mut images = MemoryStore::new("squares");
        let (mut names, mut cells) = (vec![], vec![]);
        for row in 0..2 * wells {
            let count = row + 2;
            let pixels = (0..shape.pixels()).flat_map(|at| {
                // The squares are of 8 x 8 pixels, and those that are bright lie apart.
                let square = at / 64 / 8 * 8 + at % 64 / 8;
                let is_bright = square * 5 % 64 < count;
                let level: u16 = if is_bright { 12_000 } else { 1000 };
                (level + (at % 7) as u16).to_le_bytes()
            });
            images.push(format!("site {row}"), shape, PixelType::U16, pixels.collect()).unwrap();
            names.push(format!("A{:02}", row % wells + 1));
            cells.push(count as f32);
        }
        Sites { images: Dataset::from_store(Box::new(images)), wells: names, cells, side: 64 }
    }

    #[test]
    fn the_loss_falls_and_wells_that_were_left_out_are_told() {
        let Outcome { losses, sites, off, chance, right } = leave_each_well_out(&squares(5), 60).unwrap();
        assert_eq!((losses.len(), sites), (5, 10));
        for losses in &losses {
            assert_eq!(losses.len(), 60);
            assert!(losses[59] < losses[0] / 2.0, "{losses:?}");
        }
        assert!(off < chance, "{off} and {chance}");
        assert!(right > 5 && right <= 10, "{right}");
    }

    #[test]
    fn what_cannot_be_learnt_is_refused() {
        let refusal = |sites: &Sites, epochs| leave_each_well_out(sites, epochs).err().unwrap().to_string();
        let one = refusal(&squares(1), 1);
        assert!(one.ends_with("1 well: one judges, and the others train"), "{one}");
        assert!(refusal(&squares(2), 0).starts_with("0 epochs"));
        let alike = Sites { cells: vec![3.0; 4], ..squares(2) };
        let alike = refusal(&alike, 1);
        assert_eq!(alike, "all sites of the training have 3 cells: there is nothing to learn");
    }

    #[test]
    fn generated_sites_have_cells_and_two_are_of_a_well() {
        let sites = generated(4).unwrap();
        assert_eq!(sites.wells, ["A01", "A01", "A02", "A02"]);
        assert_eq!(sites.images.row_info(3).unwrap().shape, Shape([1, 3, 1, SIDE, SIDE]));
        assert!(sites.cells.iter().all(|&cells| cells >= 1.0), "{:?}", sites.cells);
    }

    /// Five sites of NF1 have the numbers of cells that their profiles say, and four of them are learnt.
    #[test]
    fn sites_of_nf1_have_their_profiles() {
        let Some(folder) = common::nf1_folder() else { return };
        let sites = opened(&folder).unwrap();
        assert_eq!(sites.wells, ["B7", "D6", "D7", "F7", "H12"]);
        assert_eq!(sites.cells, [60.0, 52.0, 79.0, 80.0, 53.0]);
        assert_eq!(sites.images.row_info(0).unwrap().shape, Shape([1, 3, 1, 904, 1224]));
        let trained = train(&sites, vec![0, 1, 2, 3], 60).unwrap();
        assert!(trained.losses[59] < trained.losses[0] / 2.0, "{:?}", trained.losses);
        let told = judged(&trained, &sites, vec![4]).unwrap();
        assert_eq!((told.len(), told[0].has, told[0].mean), (1, 53.0, 67.75));
        assert!(told[0].said.is_finite());
    }
}
