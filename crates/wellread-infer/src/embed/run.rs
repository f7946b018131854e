//! All of it in order, on this machine: images to features, parts, the table.

use super::making::{UnfinishedTable, check_out, complete, summary};
use super::options::EmbedOptions;
use super::outcome::{Event, Summary};
use super::ready::{Ready, dataset_of};
use super::work::Work;
use anyhow::Result;
use wellread_measure::clock::Stopwatch;
use wellread_store::Store;

/// Computes the features of all images of a set and writes them as a table.
///
/// # Errors
/// A model that cannot be opened or does not fit the images. An image that cannot be read or whose features are no
/// numbers, unless those are left out. A table that is there. A disk that is full. Complete parts are kept, and a later
/// run goes on with them.
pub fn run(store: Box<dyn Store>, options: &EmbedOptions, tell: &dyn Fn(&Event<'_>)) -> Result<Summary> {
    check_out(options)?;
    let ready = Ready::open(dataset_of(store, options)?, options)?;
    let Ready { dataset, loader, mut extractor, model, notes, batch, part, made_of } = ready;
    tell(&Event::Opened(&model.backend, &notes));
    let images = dataset.len();
    if let Some(found) = complete(options, &made_of, dataset.store())? {
        return Ok(Summary { complete: true, ..summary(found, &model, options, images, 0.0) });
    }
    let making = UnfinishedTable::begin(options, &made_of, [images, part], tell)?;
    let first = making.first_left(dataset.store());
    let resumed = making.images_of_first(first);
    if resumed > 0 {
        tell(&Event::Resumed(resumed));
    }
    let begin = Stopwatch::start();
    let whole = |part: usize| making.completed(part);
    let mut work = Work {
        options,
        dataset: &dataset,
        folder: &making.folder,
        whole: &whole,
        end: images,
        part,
        next: resumed,
        tell,
    };
    let done = work.all(&loader, batch, first, &mut extractor);
    drop(extractor);
    if let Err(error) = done {
        making.give_up(options);
        return Err(error);
    }
    let joined = making.finish(options, dataset.store(), &model, tell)?;
    Ok(summary(joined, &model, options, resumed, begin.elapsed()))
}
