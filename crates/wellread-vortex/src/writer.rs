//! Writing: record batches cut to the rows that lie together, compressed and streamed to a file.

use crate::session::{Cause, Session};
use crate::strategy::{Codec, Plan};
use crate::times;
use crossbeam_channel::Receiver;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use vortex::array::ArrayRef;
use vortex::array::iter::ArrayIteratorAdapter;
use vortex::arrow::ArrowSessionExt;
use vortex::error::{VortexResult, vortex_err};
use vortex::file::WriteOptionsSessionExt;
use wellread_store::features::refuse_nul;
use wellread_store::guard::guarded;
use wellread_store::place::{self, Writer};
use wellread_store::staged::{Existing, Staged};
use wellread_store::table::arrow_array as ours;
use wellread_store::table::arrow_schema::SchemaRef;
use wellread_store::table::{TableWriter, ThreadSink};
use wellread_store::{Error, Result, WriteOptions};

/// A writer of images to a Vortex file at `target`.
///
/// # Errors
/// A target that exists and may not be replaced; a compression, a name, a time or a zone that Vortex does not have.
pub(crate) fn create(target: &Path, options: &WriteOptions) -> Result<TableWriter> {
    let codec = Codec::of(target, options.compression)?;
    refuse_nul(target, "Vortex", options.features.as_ref())?;
    times::check(target, options.features.as_ref())?;
    let plan = Plan { codec, tune: options.tune, jobs: options.jobs };
    let staged = Staged::new(target, Existing::from_overwrite(options.overwrite))?;
    let name = target.to_owned();
    let make = move |schema: SchemaRef| {
        let file =
            place::create(staged.path()).map_err(|e| Error::io(staged.target(), "cannot create", &e))?;
        let path = name.clone();
        let work = move |batches| write(&path, file, &schema, &batches, plan);
        Ok(Box::new(ThreadSink::spawn(name, work, move || Ok(staged.finished()))?) as Box<_>)
    };
    TableWriter::create(target, options, Box::new(make))
}

/// Writes all batches to `file`.
fn write(
    target: &Path,
    file: Writer,
    schema: &SchemaRef,
    batches: &Receiver<ours::RecordBatch>,
    plan: Plan,
) -> Result<()> {
    let result = guarded(target, "cannot write", || {
        let mut file = BufWriter::with_capacity(1 << 20, file);
        Ok::<_, Cause>(stream(&mut file, schema, batches, plan).and_then(|()| Ok(file.flush()?)))
    })?;
    result.map_err(|error| {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(cause) = source {
            if let Some(io) = cause.downcast_ref::<std::io::Error>() {
                return Error::io(target, "cannot write", io);
            }
            source = cause.source();
        }
        Error::new(target, format_args!("cannot write: {}", Cause::from(error)))
    })
}

fn stream(
    file: &mut BufWriter<Writer>,
    schema: &SchemaRef,
    batches: &Receiver<ours::RecordBatch>,
    plan: Plan,
) -> VortexResult<()> {
    let Session { runtime, session } = Session::new();
    let workers = runtime.new_pool();
    workers.set_workers(plan.jobs.saturating_sub(1));
    let columns = exported(ours::RecordBatch::new_empty(Arc::clone(schema)))?.schema();
    let dtype = session.arrow().from_arrow_schema(&columns)?;
    let from_arrow = session.clone();
    let types = Arc::clone(&columns);
    let convert = move |batch| from_arrow.arrow().from_arrow_record_batch(exported(batch)?, &types);
    // The first batch tells how large images are.
    let first = batches.recv().ok().map(&convert).transpose()?;
    let bytes = first.as_ref().map_or(0, bytes_per_row);
    let cut = move |array: VortexResult<ArrayRef>| -> Vec<VortexResult<ArrayRef>> {
        match array.and_then(|array| pieces(&array, plan)) {
            Ok(pieces) => pieces.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    };
    let rest = batches.clone().into_iter().map(convert);
    let arrays = first.into_iter().map(Ok).chain(rest).flat_map(cut);
    let strategy = plan.strategy(&session, &dtype, bytes);
    session
        .write_options()
        .with_strategy(strategy)
        .with_metadata_segments(schema.metadata().iter().map(|(k, v)| (k.clone(), v.clone().into_bytes())))
        .blocking(&runtime)
        .write(file, ArrayIteratorAdapter::new(dtype, arrays))?;
    Ok(())
}

fn exported(batch: ours::RecordBatch) -> VortexResult<arrow_array::RecordBatch> {
    crate::bridge::export(batch).map_err(|why| vortex_err!("{why}"))
}

fn bytes_per_row(array: &ArrayRef) -> usize {
    array.nbytes() as usize / array.len().max(1)
}

/// An array cut to the rows that lie together, the last ones fewer.
fn pieces(array: &ArrayRef, plan: Plan) -> VortexResult<Vec<ArrayRef>> {
    let Some(rows) = plan.rows_together(bytes_per_row(array)) else { return Ok(vec![array.clone()]) };
    let starts = (0..array.len()).step_by(rows);
    starts.map(|start| array.slice(start..(start + rows).min(array.len()))).collect()
}
