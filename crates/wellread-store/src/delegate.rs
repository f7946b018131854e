//! Methods of a store that it hands on to another one, or has no better answer to. Facts of rows that it does not know.

/// Writes those methods of a [`Store`](crate::Store) that hand on what they are asked to another store, by their names:
/// `delegate_store!(self => self.inner; path, len, metadata)` within the `impl`. Write the other methods beside it.
///
/// ```
/// use wellread_image::PixelType;
/// use wellread_store::{Request, Result, RowInfo, Store, default_answers, delegate_store};
///
/// /// A set whose pixels are called signed.
/// struct Signed(Box<dyn Store>);
///
/// impl Store for Signed {
///     delegate_store!(self => self.0; format, path, remote_path, len, name, metadata, layout, files, files_of);
///     delegate_store!(self => self.0; has_checksums, hints, row_hints, heads, ranges, read);
///     // Row by row, by the methods of this store: a scan of the other one tells the other type.
///     default_answers!(scan);
///     fn row_info(&self, row: usize) -> Result<RowInfo> {
///         Ok(RowInfo { dtype: PixelType::I8, ..self.0.row_info(row)? })
///     }
///     fn check(&self, request: &Request) -> Result<RowInfo> {
///         self.0.check(request)?;
///         self.row_info(request.row)
///     }
/// }
/// ```
#[macro_export]
macro_rules! delegate_store {
    (@format $self:ident $inner:expr) => {
        fn format(&$self) -> &'static str {
            $inner.format()
        }
    };
    (@path $self:ident $inner:expr) => {
        fn path(&$self) -> &::std::path::Path {
            $inner.path()
        }
    };
    (@remote_path $self:ident $inner:expr) => {
        fn remote_path(&$self) -> Option<&::std::path::Path> {
            $inner.remote_path()
        }
    };
    (@len $self:ident $inner:expr) => {
        fn len(&$self) -> usize {
            $inner.len()
        }
    };
    (@row_info $self:ident $inner:expr) => {
        fn row_info(&$self, row: usize) -> $crate::Result<$crate::RowInfo> {
            $inner.row_info(row)
        }
    };
    (@name $self:ident $inner:expr) => {
        fn name(&$self, row: usize) -> $crate::Result<String> {
            $inner.name(row)
        }
    };
    (@metadata $self:ident $inner:expr) => {
        fn metadata(&$self, row: usize) -> $crate::Result<$crate::ImageMetadata> {
            $inner.metadata(row)
        }
    };
    (@layout $self:ident $inner:expr) => {
        fn layout(&$self) -> $crate::Result<$crate::StoreLayout> {
            $inner.layout()
        }
    };
    (@files $self:ident $inner:expr) => {
        fn files(&$self) -> $crate::Result<Vec<::std::path::PathBuf>> {
            $inner.files()
        }
    };
    (@files_of $self:ident $inner:expr) => {
        fn files_of(&$self, rows: &[usize]) -> $crate::Result<Vec<::std::path::PathBuf>> {
            $inner.files_of(rows)
        }
    };
    (@has_checksums $self:ident $inner:expr) => {
        fn has_checksums(&$self) -> bool {
            $inner.has_checksums()
        }
    };
    (@hints $self:ident $inner:expr) => {
        fn hints(&$self) -> $crate::Hints<'_> {
            $inner.hints()
        }
    };
    (@row_hints $self:ident $inner:expr) => {
        fn row_hints(&$self, row: usize) -> $crate::Result<$crate::RowHints<'_>> {
            $inner.row_hints(row)
        }
    };
    (@scan $self:ident $inner:expr) => {
        fn scan(
            &$self,
            rows: ::std::ops::Range<usize>,
            each: &mut $crate::EachImage<'_>,
        ) -> $crate::Result<()> {
            $inner.scan(rows, each)
        }
    };
    (@check $self:ident $inner:expr) => {
        fn check(&$self, request: &$crate::Request) -> $crate::Result<$crate::RowInfo> {
            $inner.check(request)
        }
    };
    (@heads $self:ident $inner:expr) => {
        fn heads(
            &$self,
            rows: &[usize],
            extent: $crate::ReadExtent,
            wanted: &mut $crate::place::WantedRanges,
        ) {
            $inner.heads(rows, extent, wanted);
        }
    };
    (@ranges $self:ident $inner:expr) => {
        fn ranges(
            &$self,
            requests: &[$crate::Request],
            wanted: &mut $crate::place::WantedRanges,
        ) -> $crate::Result<()> {
            $inner.ranges(requests, wanted)
        }
    };
    (@read $self:ident $inner:expr) => {
        fn read(
            &$self,
            requests: &[$crate::Request],
            scratch: &mut $crate::Scratch,
            sink: &mut dyn $crate::PixelSink,
        ) -> $crate::Result<()> {
            $inner.read(requests, scratch, sink)
        }
    };
    ($self:ident => $inner:expr; $($method:ident),+ $(,)?) => {
        $($crate::delegate_store!(@$method $self $inner);)+
    };
}

/// Writes those methods of a [`Store`](crate::Store) that the store has no better answer to, by their names:
/// `default_answers!(files_of, scan)` within the `impl`. Write the other methods beside it.
///
/// | method | answer |
/// |---|---|
/// | `remote_path` | its path, where that is remote |
/// | `name` | that of the row's metadata |
/// | `files`, `layout`, `hints`, `has_checksums` | nothing, or `false` |
/// | `files_of` | all files |
/// | `row_hints` | the facts that it knows itself |
/// | `heads`, `ranges` | nothing is asked for ahead |
/// | `scan` | row by row, by its own `read` |
/// | `check` | against its own shape of the row |
#[macro_export]
macro_rules! default_answers {
    (@remote_path) => {
        fn remote_path(&self) -> Option<&::std::path::Path> {
            Some($crate::Store::path(self)).filter(|path| $crate::place::is_remote(path))
        }
    };
    (@name) => {
        fn name(&self, row: usize) -> $crate::Result<String> {
            Ok($crate::Store::metadata(self, row)?.name)
        }
    };
    (@files) => {
        fn files(&self) -> $crate::Result<Vec<::std::path::PathBuf>> {
            Ok(vec![])
        }
    };
    (@layout) => {
        fn layout(&self) -> $crate::Result<$crate::StoreLayout> {
            Ok($crate::StoreLayout::default())
        }
    };
    (@hints) => {
        fn hints(&self) -> $crate::Hints<'_> {
            $crate::Hints::default()
        }
    };
    (@has_checksums) => {
        fn has_checksums(&self) -> bool {
            false
        }
    };
    (@files_of) => {
        fn files_of(&self, _: &[usize]) -> $crate::Result<Vec<::std::path::PathBuf>> {
            $crate::Store::files(self)
        }
    };
    (@row_hints) => {
        fn row_hints(&self, row: usize) -> $crate::Result<$crate::RowHints<'_>> {
            Ok($crate::RowHints::new(self, row))
        }
    };
    (@heads) => {
        fn heads(&self, _: &[usize], _: $crate::ReadExtent, _: &mut $crate::place::WantedRanges) {}
    };
    (@ranges) => {
        fn ranges(&self, _: &[$crate::Request], _: &mut $crate::place::WantedRanges) -> $crate::Result<()> {
            Ok(())
        }
    };
    (@scan) => {
        fn scan(
            &self,
            rows: ::std::ops::Range<usize>,
            each: &mut $crate::EachImage<'_>,
        ) -> $crate::Result<()> {
            $crate::scan_ahead(self, rows, each)
        }
    };
    (@check) => {
        fn check(&self, request: &$crate::Request) -> $crate::Result<$crate::RowInfo> {
            $crate::check_request(self, request)
        }
    };
    ($($method:ident),+ $(,)?) => {
        $($crate::default_answers!(@$method);)+
    };
}

/// Writes those methods of a [`FeatureTable`](crate::FeatureTable) that hand on what another store says of its columns, by their
/// names: `delegate_columns!(self => self.inner; feature_names, columns_left_out)` within the `impl`. Write the other methods
/// beside it.
#[macro_export]
macro_rules! delegate_columns {
    (@feature_names $self:ident $inner:expr) => {
        fn feature_names(&$self) -> Vec<String> {
            $inner.hints().feature_names()
        }
    };
    (@columns_left_out $self:ident $inner:expr) => {
        fn columns_left_out(&$self) -> Vec<$crate::LeftOut> {
            $inner.hints().columns_left_out()
        }
    };
    (@columns_renamed $self:ident $inner:expr) => {
        fn columns_renamed(&$self) -> Vec<$crate::Renamed> {
            $inner.hints().columns_renamed()
        }
    };
    (@columns_in_utc $self:ident $inner:expr) => {
        fn columns_in_utc(&$self) -> Vec<String> {
            $inner.hints().columns_in_utc()
        }
    };
    (@has_row_numbers $self:ident $inner:expr) => {
        fn has_row_numbers(&$self) -> bool {
            $inner.hints().has_row_numbers()
        }
    };
    ($self:ident => $inner:expr; $($method:ident),+ $(,)?) => {
        $($crate::delegate_columns!(@$method $self $inner);)+
    };
}

/// Writes those methods of a [`FeatureTable`](crate::FeatureTable) of which a store has nothing to say, by their names:
/// `default_columns!(columns_in_utc, has_row_numbers)` within the `impl`. Write the other methods beside it.
#[macro_export]
macro_rules! default_columns {
    (@columns_left_out) => {
        fn columns_left_out(&self) -> Vec<$crate::LeftOut> {
            vec![]
        }
    };
    (@columns_renamed) => {
        fn columns_renamed(&self) -> Vec<$crate::Renamed> {
            vec![]
        }
    };
    (@columns_in_utc) => {
        fn columns_in_utc(&self) -> Vec<String> {
            vec![]
        }
    };
    (@has_row_numbers) => {
        fn has_row_numbers(&self) -> bool {
            false
        }
    };
    ($($method:ident),+ $(,)?) => {
        $($crate::default_columns!(@$method);)+
    };
}

/// Writes those methods of [`RowFacts`](crate::RowFacts) that a store has no better answer to, by their names:
/// `unknown_facts!(file, cut, unkept)` within the `impl`. Write the other methods beside it.
///
/// A row's position is its number, its metadata are its own, and reading it takes what its shape says. It has no grid,
/// no file, no cut, and nothing that is not kept.
#[macro_export]
macro_rules! unknown_facts {
    (@position) => {
        fn position(&self, row: usize) -> u64 {
            row as u64
        }
    };
    (@grid) => {
        fn grid(&self, _: usize) -> Option<[usize; 2]> {
            None
        }
    };
    (@file) => {
        fn file(&self, _: usize) -> Option<::std::path::PathBuf> {
            None
        }
    };
    (@cut) => {
        fn cut(&self, _: usize) -> Option<$crate::RowCut> {
            None
        }
    };
    (@metadata_rows) => {
        fn metadata_rows(&self, _: usize) -> usize {
            1
        }
    };
    (@unkept) => {
        fn unkept(&self, _: usize) -> Vec<&'static str> {
            vec![]
        }
    };
    (@working_bytes) => {
        fn working_bytes(&self, row: usize) -> $crate::Result<usize> {
            Ok($crate::Store::row_info(self, row)?.working_bytes())
        }
    };
    ($($fact:ident),+ $(,)?) => {
        $($crate::unknown_facts!(@$fact);)+
    };
}
