//! The kinds of events in a trace.

/// The subject of a span. Names, categories and arguments are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A file is opened.
    Open,
    /// Bytes of a file are read.
    Read,
    /// A storage engine is asked for columns of rows; the work on each batch of them is inside.
    Query,
    /// Stored bytes are decompressed.
    Decompress,
    /// Decompressed bytes are decoded to pixels: narrowed, looked up in a dictionary.
    Decode,
    /// Pixels are cropped, turned, scaled and put into the batch.
    Transform,
    /// The steps that one pass over the pixels cannot do: illumination, resizing, rotation, noise, blur, half
    /// precision.
    Finish,
    /// A thread reads and transforms rows of a batch.
    Rows,
    /// A worker waits until there is room for another batch. Or it waits for a buffer that comes back in a moment, or
    /// for the end of the epoch. The reader of a conversion waits for its writer.
    WaitRoom,
    /// The consumer waits for the threads that read its batch.
    WaitBatch,
    /// A thread waits for a page that another one is decoding.
    WaitPage,
    /// A thread waits for memory that other threads read into, where the loader's memory is bounded.
    WaitMemory,
    /// A thread waits for images that other ones are reading into a cache.
    WaitImage,
    /// A thread waits until the bytes of its batch, which are remote, were asked for.
    WaitRequest,
    /// A thread waits for what another one reads of a table's rows: where their pages lie, their shapes, their metadata.
    WaitIndex,
    /// The threads of an epoch are started.
    StartWorkers,
    /// The threads of an epoch are ended.
    StopWorkers,
    /// A batch, from being asked for to being there: the data wait.
    Batch,
    /// A single image, from being asked for to being there.
    Sample,
    /// A set is opened.
    OpenSet,
    /// A set is read whole or in part.
    ReadSet,
    /// A set is written.
    WriteSet,
    /// An image is handed to a writer, which may compress and write.
    WriteImage,
    /// A model is run on a batch.
    Step,
    /// A model's forward pass.
    Forward,
    /// A model's backward pass.
    Backward,
    /// A model's parameters are changed.
    Optimiser,
    /// An array becomes a tensor.
    Convert,
    /// The delivered batch is compared with the expected one; no figure counts it.
    Verify,
    /// A framework runs a model several times, in a process of its own.
    Passes,
    /// A framework builds and compiles a model.
    Build,
    /// One turn of a configuration of a benchmark.
    Turn,
    /// A benchmark, or a part of a command.
    Section,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 33] = [
        Self::Open,
        Self::Read,
        Self::Query,
        Self::Decompress,
        Self::Decode,
        Self::Transform,
        Self::Finish,
        Self::Rows,
        Self::WaitRoom,
        Self::WaitBatch,
        Self::WaitPage,
        Self::WaitMemory,
        Self::WaitImage,
        Self::WaitRequest,
        Self::WaitIndex,
        Self::StartWorkers,
        Self::StopWorkers,
        Self::Batch,
        Self::Sample,
        Self::OpenSet,
        Self::ReadSet,
        Self::WriteSet,
        Self::WriteImage,
        Self::Step,
        Self::Forward,
        Self::Backward,
        Self::Optimiser,
        Self::Convert,
        Self::Verify,
        Self::Passes,
        Self::Build,
        Self::Turn,
        Self::Section,
    ];

    /// Its name in the file, unless the span has one of its own.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Query => "query",
            Self::Decompress => "decompress",
            Self::Decode => "decode",
            Self::Transform => "transform",
            Self::Finish => "finish",
            Self::Rows => "rows",
            Self::WaitRoom => "wait for room",
            Self::WaitBatch => "wait for batch",
            Self::WaitPage => "wait for page",
            Self::WaitMemory => "wait for memory",
            Self::WaitImage => "wait for image",
            Self::WaitRequest => "wait for request",
            Self::WaitIndex => "wait for index",
            Self::StartWorkers => "start workers",
            Self::StopWorkers => "stop workers",
            Self::Batch => "batch",
            Self::Sample => "sample",
            Self::OpenSet => "open set",
            Self::ReadSet => "read set",
            Self::WriteSet => "write set",
            Self::WriteImage => "write image",
            Self::Step => "step",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Optimiser => "optimiser",
            Self::Convert => "convert",
            Self::Verify => "verify",
            Self::Passes => "passes",
            Self::Build => "build",
            Self::Turn => "turn",
            Self::Section => "section",
        }
    }

    /// Its category in the file, by which viewers filter.
    pub const fn category(self) -> &'static str {
        match self {
            Self::Open | Self::Read | Self::Query => "file",
            Self::Decompress | Self::Decode => "decode",
            Self::Transform | Self::Finish => "transform",
            Self::WaitRoom
            | Self::WaitBatch
            | Self::WaitPage
            | Self::WaitMemory
            | Self::WaitImage
            | Self::WaitRequest
            | Self::WaitIndex => "wait",
            Self::Rows | Self::StartWorkers | Self::StopWorkers => "loader",
            Self::Batch
            | Self::Sample
            | Self::OpenSet
            | Self::ReadSet
            | Self::WriteSet
            | Self::WriteImage
            | Self::Step
            | Self::Forward
            | Self::Backward
            | Self::Optimiser
            | Self::Convert
            | Self::Verify => "consumer",
            Self::Passes | Self::Build | Self::Turn | Self::Section => "benchmark",
        }
    }

    /// Names of its arguments; an empty name is none.
    pub const fn args(self) -> [&'static str; 2] {
        match self {
            Self::Read | Self::Decode | Self::Convert => ["bytes", ""],
            Self::Decompress => ["stored_bytes", "bytes"],
            Self::Transform => ["row", "bytes"],
            Self::Finish | Self::Sample | Self::WriteImage => ["row", ""],
            Self::Rows | Self::Batch => ["batch", "rows"],
            Self::Open
            | Self::OpenSet
            | Self::WaitRoom
            | Self::WaitPage
            | Self::WaitMemory
            | Self::WaitImage
            | Self::WaitRequest
            | Self::WaitIndex
            | Self::Section
            | Self::Forward
            | Self::Backward
            | Self::Optimiser
            | Self::Build => ["", ""],
            Self::WaitBatch => ["batch", ""],
            Self::StartWorkers | Self::StopWorkers => ["workers", ""],
            Self::Query => ["rows", ""],
            Self::ReadSet | Self::WriteSet | Self::Verify => ["images", ""],
            Self::Step => ["number", ""],
            Self::Passes => ["passes", ""],
            Self::Turn => ["round", "dropped_events"],
        }
    }

    /// Whether there are so many that a long recording keeps a part of them only.
    pub(crate) const fn is_detail(self) -> bool {
        !matches!(self, Self::Turn | Self::Section | Self::Build)
    }
}
