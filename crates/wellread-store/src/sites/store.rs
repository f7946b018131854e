//! The store whose rows are sites: planes of files of another store, put together.
//!
//! ```text
//!  request (site, region T C Z Y X)
//!     │ for each plane that lies in a file of its own
//!     ▼
//!  requests (file, region with 1 along the axes that names give) ──inner.read──▶ blocks ──PlaneSink──▶ blocks of the site
//! ```
//!
//! Files are not opened with the set. The first file of a site decides the site's shape and type, and the others are
//! compared with it when they are read.
//!
//! Long because all of it is one type, which answers all that a store is asked.

use super::channels;
use super::columns::TextColumn;
use super::fault::axes_taken;
use super::group::{Grouped, NO_FILE};
use super::layout::Details;
use super::missing::{Incomplete, lacking, only, whole_sites};
use super::plane_sink::{PlaneOrigin, PlaneSink};
use crate::format::Missing;
use crate::hints::{SiteSummary, SiteTable};
use crate::place::WantedRanges;
use crate::surface::{option, option_as};
use crate::words::counted;
use crate::{
    Block, Error, FeatureTable, Hints, LeftOutCounts, PixelSink, ReadExtent, Request, Result, RowHints,
    RowInfo, Scratch, Store, StoreLayout, check_request, default_answers, default_columns, delegate_columns,
    features, outer_rows, try_alloc,
};
use arrow_array::{ArrayRef, RecordBatch};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wellread_image::{ImageMetadata, Region, Shape};

/// Files of the first site that are looked into for what they have been kept as.
const MOST_LOOKED_INTO: usize = 64;

/// How a set came to be one of sites.
struct Origin {
    /// Name of the layout, or the pattern.
    layout: String,
    /// The treatment of sites that are not complete.
    missing: Missing,
    /// The incomplete sites, before any were left out.
    incomplete: Incomplete,
    /// The opened path: a folder, or a table of files.
    path: PathBuf,
    /// Further facts of the images in a folder: looked up when they are asked for.
    details: Box<FindDetails>,
}

/// Finds what is known of the images in a folder.
pub(super) type FindDetails = dyn Fn(&Path) -> Option<Details> + Send + Sync;

/// Sites, each of several files.
struct SitesStore {
    inner: Box<dyn Store>,
    grouped: Grouped,
    origin: Origin,
    /// The facts of the images in each folder that was asked for: plates of one set have their own.
    details: Mutex<HashMap<PathBuf, Arc<Details>>>,
    /// The columns, also as the trait has them.
    columns: Vec<(String, ArrayRef)>,
}

/// The sites of a grouping; those that are not all there are left out where that is asked for.
///
/// # Errors
/// No site is left.
pub(super) fn opened(
    inner: Box<dyn Store>,
    grouped: Grouped,
    layout: String,
    missing: Missing,
    path: PathBuf,
    details: Box<FindDetails>,
) -> Result<Box<dyn Store>> {
    let incomplete = Incomplete::of(&grouped);
    let grouped = if missing == Missing::Skip && incomplete.count > 0 {
        let whole = whole_sites(&grouped);
        if whole.is_empty() {
            let cause = format!("no site has all of its files: {}", incomplete.first.join("; "));
            let zero = format!("{} reads the missing part as 0", option_as("missing", "zero"));
            let axes = axes_taken(&layout);
            let hints = incomplete.doubt(&layout).into_iter().chain([zero.as_str()]).chain(axes.as_deref());
            let hints: Vec<&str> = hints.collect();
            return Err(Error::new(path, cause).hint(hints.join("; ")).choice());
        }
        only(grouped, &whole)
    } else {
        grouped
    };
    let origin = Origin { layout, missing, incomplete, path, details };
    Ok(Box::new(SitesStore::new(inner, grouped, origin)))
}

impl SitesStore {
    fn new(inner: Box<dyn Store>, grouped: Grouped, origin: Origin) -> Self {
        let columns = grouped.columns.iter().map(|column: &TextColumn| (column.name.clone(), column.array()));
        Self { inner, columns: columns.collect(), grouped, origin, details: Mutex::default() }
    }

    /// The rows of the files of a site, plane by plane.
    fn planes(&self, row: usize) -> Result<&[u32]> {
        let each = self.grouped.planes_of_site();
        let planes =
            self.grouped.planes.get(row.saturating_mul(each)..row.saturating_add(1).saturating_mul(each));
        planes.ok_or_else(|| Error::no_such_row(self.path(), row, self.len()))
    }

    /// The rows of the files that a site has.
    fn files_of_site(&self, row: usize) -> Result<impl Iterator<Item = usize>> {
        Ok(self.planes(row)?.iter().filter(|&&file| file != NO_FILE).map(|&file| file as usize))
    }

    /// Looks into the files of the first site on this machine. Those of a channel may be kept in another way than the first ones.
    fn look_into_first(&self) {
        if self.inner.remote_path().is_none()
            && let Ok(files) = self.files_of_site(0)
        {
            for file in files.take(MOST_LOOKED_INTO) {
                // An error comes back where the file is read.
                let _ = self.inner.row_info(file);
            }
        }
    }

    /// The row of a site's first file.
    fn first(&self, row: usize) -> Result<usize> {
        let first = self.files_of_site(row)?.next();
        first.ok_or_else(|| Error::new(self.path(), "the site has no file").row(row))
    }

    /// The file that says what a site looks like: its first, or of a site without any the first of all.
    fn model(&self, row: usize) -> Result<usize> {
        let own = self.files_of_site(row)?.next();
        let any = || self.grouped.planes.iter().find(|&&file| file != NO_FILE).map(|&file| file as usize);
        own.or_else(any).ok_or_else(|| Error::new(self.path(), "no site has a file").row(row))
    }

    /// Whether the names give each of the axes T, C and Z.
    fn given(&self) -> [bool; 3] {
        [0, 1, 2].map(|axis| self.grouped.axes[axis].len() > 1)
    }

    /// The shape and type that a file of a site must have.
    fn first_info(&self, row: usize) -> Result<RowInfo> {
        let file = self.model(row)?;
        let info = self.inner.row_info(file).map_err(|e| e.of_row(row))?;
        for (axis, _) in self.given().into_iter().enumerate().filter(|(_, given)| *given) {
            let n = info.shape.0[axis];
            if n > 1 {
                let cause = format!(
                    "holds {n} {} of its own, which its name gives as well",
                    ["time points", "channels", "planes of a stack"][axis]
                );
                return Err(Error::new(self.file(file), cause).row(row).hint(format_args!(
                    "read single files: {}; or give a pattern without that field ({})",
                    option_as("layout", "files"),
                    option("pattern")
                )));
            }
        }
        Ok(info)
    }

    /// A row's file, for messages.
    fn file(&self, inner_row: usize) -> PathBuf {
        let file = self.inner.row_hints(inner_row).ok().and_then(RowHints::file);
        file.unwrap_or_else(|| self.inner.path().to_owned())
    }

    /// That a file is as the first of its site.
    fn alike(&self, row: usize, file: usize, expected: RowInfo) -> Result<()> {
        let info = self.inner.row_info(file).map_err(|e| e.of_row(row))?;
        if info == expected {
            return Ok(());
        }
        let first = self.file(self.first(row)?);
        let name = first.file_name().unwrap_or(first.as_os_str()).to_string_lossy().into_owned();
        let cause = format_args!(
            "is {} {}, and {name}, of the same site, {} {} (TCZYX): files of a site must be alike",
            info.shape, info.dtype, expected.shape, expected.dtype
        );
        Err(Error::new(self.file(file), cause)
            .row(row)
            .hint(format_args!("read single files: {}", option_as("layout", "files"))))
    }

    /// The facts of a site beside its files: those of the folder that its first file is in.
    fn details(&self, row: usize) -> Result<Arc<Details>> {
        let file = self.inner.row_hints(self.model(row)?)?.file();
        let folder = file.as_deref().and_then(Path::parent).unwrap_or(self.inner.path());
        let known = || self.details.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(details) = known().get(folder) {
            return Ok(Arc::clone(details));
        }
        // Read without the lock, which a process that forks meanwhile would find closed.
        let details = Arc::new((self.origin.details)(folder).unwrap_or_default());
        Ok(Arc::clone(known().entry(folder.to_owned()).or_insert(details)))
    }

    /// How many sites were left out since they are not complete.
    fn left_out(&self) -> usize {
        if self.origin.missing == Missing::Skip { self.origin.incomplete.count } else { 0 }
    }

    /// The doubt about the pattern, where it leaves no site whole.
    fn doubt(&self) -> Option<&'static str> {
        self.origin.incomplete.doubt(&self.origin.layout)
    }

    /// The error of a site that lacks planes.
    fn incomplete(&self, row: usize, planes: &[u32]) -> Error {
        let name = self.grouped.names.get(row).map_or("", String::as_str);
        let lacks = lacking(&self.grouped, planes);
        let zero = format!("{} reads the missing part as 0", option_as("missing", "zero"));
        let hint = match self.doubt() {
            // Nothing would be left without these sites.
            Some(doubt) => format!("{doubt}; {zero}"),
            None => format!("{} leaves such sites out, {zero}", option_as("missing", "skip")),
        };
        let axes = axes_taken(&self.origin.layout).map_or_else(String::new, |axes| format!("; {axes}"));
        Error::new(self.path(), format_args!("{name} has no {lacks}"))
            .row(row)
            .hint(format_args!("{hint}{axes}"))
    }

    /// One request as requests of files, and the parts of it that are missing.
    fn split(&self, at: usize, request: &Request, parts: &mut Parts) -> Result<()> {
        check_request(self, request)?;
        let planes = self.planes(request.row)?;
        let expected = self.first_info(request.row)?;
        let given = self.given();
        let Region { start, size } = request.region;
        let range = |axis: usize| if given[axis] { start[axis]..start[axis] + size[axis] } else { 0..1 };
        let [_, nc, nz] = [0, 1, 2].map(|axis| self.grouped.axes[axis].len());
        for t in range(0) {
            for c in range(1) {
                for z in range(2) {
                    let origin = [t, c, z];
                    let mut region = request.region;
                    for axis in (0..3).filter(|&axis| given[axis]) {
                        (region.start[axis], region.size[axis]) = (0, 1);
                    }
                    let file = planes[(t * nc + c) * nz + z];
                    let place = PlaneOrigin { request: at, origin, given };
                    if file != NO_FILE {
                        self.alike(request.row, file as usize, expected)?;
                        parts.inner.push(Request { row: file as usize, region });
                        parts.origins.push(place);
                    } else if self.origin.missing == Missing::Zero {
                        parts.empty.push((place, region, expected));
                    } else {
                        return Err(self.incomplete(request.row, planes));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The reads that requests of sites need.
#[derive(Default)]
struct Parts {
    /// Requests of files, and where their blocks go.
    inner: Vec<Request>,
    origins: Vec<PlaneOrigin>,
    /// The parts that no file holds: their place, their region in a file, and the info of such a file.
    empty: Vec<(PlaneOrigin, Region, RowInfo)>,
}

impl Store for SitesStore {
    // Formats of which sites are made know no more of a row's bytes than its shape.
    default_answers!(scan, check);

    fn format(&self) -> &'static str {
        self.inner.format()
    }

    fn path(&self) -> &Path {
        &self.origin.path
    }

    fn remote_path(&self) -> Option<&Path> {
        self.inner.remote_path()
    }

    fn len(&self) -> usize {
        self.grouped.names.len()
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        let RowInfo { shape: Shape(mut shape), dtype } = self.first_info(row)?;
        for (axis, _) in self.given().into_iter().enumerate().filter(|(_, given)| *given) {
            shape[axis] = self.grouped.axes[axis].len();
        }
        let shape = Shape(shape);
        shape.checked_bytes(dtype).map_err(|e| Error::new(self.path(), e).row(row))?;
        Ok(RowInfo { shape, dtype })
    }

    fn name(&self, row: usize) -> Result<String> {
        let name = self.grouped.names.get(row).cloned();
        name.ok_or_else(|| Error::no_such_row(self.path(), row, self.len()))
    }

    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let name = self.name(row)?;
        let mut metadata = self.inner.metadata(self.model(row)?).map_err(|e| e.of_row(row))?;
        let details = self.details(row)?;
        let called = &self.grouped.channels;
        if !called.is_empty() && self.row_info(row)?.shape.c() == called.len() {
            let own = std::mem::take(&mut metadata.channels);
            metadata.channels = channels::named(&self.grouped.axes[1], called, &details, &own);
        }
        let [x, y, z] = &details.sizes;
        metadata.physical_size_x = x.clone().or(metadata.physical_size_x);
        metadata.physical_size_y = y.clone().or(metadata.physical_size_y);
        metadata.physical_size_z = z.clone().or(metadata.physical_size_z);
        metadata.id.clone_from(&name);
        metadata.name = name;
        Ok(metadata)
    }

    fn layout(&self) -> Result<StoreLayout> {
        self.look_into_first();
        let layout = self.inner.layout()?;
        let files = counted(self.grouped.planes_of_site(), "file");
        let variant = format!("{} sites of {files}; {}", self.origin.layout, layout.variant);
        Ok(StoreLayout { variant, chunk: None, ..layout })
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let rows: Vec<usize> =
            self.grouped.planes.iter().filter(|&&file| file != NO_FILE).map(|&file| file as usize).collect();
        if rows.len() == self.inner.len() { self.inner.files() } else { self.inner.files_of(&rows) }
    }

    fn files_of(&self, rows: &[usize]) -> Result<Vec<PathBuf>> {
        let (mut files, mut sites) = (vec![], vec![]);
        for &row in rows {
            files.extend(self.files_of_site(row)?);
            sites.resize(files.len(), row);
        }
        let site_of = |file| files.iter().position(|&other| other == file).map(|at| sites[at]);
        self.inner.files_of(&files).map_err(|error| error.of_outer_row(site_of))
    }

    fn has_checksums(&self) -> bool {
        self.inner.has_checksums()
    }

    fn hints(&self) -> Hints<'_> {
        let inner = self.inner.hints();
        let (images, files) = (self.left_out(), self.grouped.unmatched.len());
        let left_out = LeftOutCounts { images, files, ..inner.left_out };
        Hints { columns: Some(self), sites: Some(self), left_out, ..inner }
    }

    fn row_hints(&self, row: usize) -> Result<RowHints<'_>> {
        self.inner.row_hints(self.model(row)?)
    }

    fn heads(&self, rows: &[usize], extent: ReadExtent, wanted: &mut WantedRanges) {
        let files = rows.iter().filter_map(|&row| self.files_of_site(row).ok()).flatten();
        self.inner.heads(&files.collect::<Vec<_>>(), extent, wanted);
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        let mut parts = Parts::default();
        for (at, request) in requests.iter().enumerate() {
            self.split(at, request, &mut parts)?;
        }
        self.inner.ranges(&parts.inner, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let mut parts = Parts::default();
        for (at, request) in requests.iter().enumerate() {
            self.split(at, request, &mut parts)?;
        }
        for (place, region, info) in &parts.empty {
            let bytes = region.pixels() * info.dtype.size();
            let row = requests[place.request].row;
            try_alloc::grow(&mut scratch.pixels, bytes)
                .map_err(|cause| Error::new(self.path(), cause).row(row))?;
            let data = &mut scratch.pixels[..bytes];
            data.fill(0);
            place.put(&Block { region: *region, data, dtype: info.dtype }, sink)?;
        }
        let row_of = |file: usize| {
            let part = parts.inner.iter().position(|part| part.row == file);
            part.map(|part| requests[parts.origins[part].request].row)
        };
        let read = |sink: &mut dyn PixelSink| {
            self.inner.read(&parts.inner, scratch, &mut PlaneSink { origins: &parts.origins, sink })
        };
        outer_rows::renumbered(sink, read, row_of)
    }
}

impl FeatureTable for SitesStore {
    // Columns of names of files, or of one table.
    default_columns!(columns_in_utc, has_row_numbers);
    delegate_columns!(self => self.inner; columns_left_out, columns_renamed);

    fn feature_names(&self) -> Vec<String> {
        let own = self.columns.iter().map(|(name, _)| name.clone());
        let others = self.inner.hints().feature_names();
        let is_new = |name: &String| self.columns.iter().all(|(own, _)| own != name);
        own.chain(others.into_iter().filter(is_new)).collect()
    }

    fn features(&self, names: &[String]) -> Result<Option<RecordBatch>> {
        if names.is_empty() {
            return Ok(None);
        }
        let own = |name: &String| self.columns.iter().find(|(own, _)| own == name).map(|(_, column)| column);
        let others: Vec<String> = names.iter().filter(|name| own(name).is_none()).cloned().collect();
        let first = (0..self.len()).map(|row| self.first(row).ok().map(|file| file as u64));
        let others = features::of_rows(&*self.inner, &others, first)?;
        let mut columns: Vec<(&str, ArrayRef, bool)> = vec![];
        for name in names {
            let found = own(name).or_else(|| others.as_ref()?.column_by_name(name));
            let column =
                found.ok_or_else(|| Error::new(self.path(), format_args!("has no column {name:?}")))?;
            columns.push((name.as_str(), ArrayRef::clone(column), true));
        }
        RecordBatch::try_from_iter_with_nullable(columns).map(Some).map_err(|e| Error::new(self.path(), e))
    }
}

impl SiteTable for SitesStore {
    fn summary(&self) -> SiteSummary {
        let Incomplete { count, planes, .. } = self.origin.incomplete;
        let (left_out, named) = (self.left_out(), SiteSummary::NAMED);
        let first_left_out = self.origin.incomplete.names.iter().take(left_out.min(named));
        let lacks = self.origin.incomplete.sentence(self.origin.missing);
        SiteSummary {
            layout: self.origin.layout.clone(),
            files_per_site: self.grouped.planes_of_site(),
            channels: self.grouped.channels.clone(),
            missing: lacks.into_iter().chain(self.doubt().map(str::to_owned)).collect(),
            incomplete: count,
            planes_missing: planes,
            left_out,
            left_out_first: first_left_out.cloned().collect(),
            unmatched: self.grouped.unmatched.len(),
            unmatched_first: self.grouped.unmatched.iter().take(named).cloned().collect(),
            unnamed: self.grouped.unnamed.len(),
            unnamed_first: self.grouped.unnamed.iter().take(named).cloned().collect(),
        }
    }

    fn complete(&self, row: usize) -> Result<()> {
        let planes = self.planes(row)?;
        let is_whole = self.origin.missing != Missing::Error || !planes.contains(&NO_FILE);
        if is_whole { Ok(()) } else { Err(self.incomplete(row, planes)) }
    }

    fn look_into(&self, row: usize) -> Result<()> {
        let expected = self.first_info(row)?;
        self.files_of_site(row)?.try_for_each(|file| self.alike(row, file, expected))
    }

    fn files_of_rows(&self) -> Vec<Vec<PathBuf>> {
        let files =
            |row| self.files_of_site(row).map(|files| files.map(|file| self.file(file)).collect::<Vec<_>>());
        (0..self.len()).map(|row| files(row).unwrap_or_default()).collect()
    }
}
