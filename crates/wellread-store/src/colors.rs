//! Pictures of any colours as red, green and blue: a grey one is all three alike, transparency is left out. A model of
//! photographs needs it for a folder in which grey pictures lie among coloured ones, as in ImageNet.

use crate::place::WantedRanges;
use crate::{
    Block, Hints, PixelSink, Request, Result, RowInfo, Scratch, Store, check_request, default_answers,
    delegate_store,
};
use wellread_image::{Channel, ImageMetadata, Region, Shape};

/// Red, green and blue.
const COLORS: usize = 3;
/// Their names, which coloured pictures have.
const NAMES: [&str; COLORS] = ["Red", "Green", "Blue"];

/// A store whose images all have three channels.
pub struct Colors(Box<dyn Store>);

impl Colors {
    /// The view. Reads nothing.
    pub fn new(inner: Box<dyn Store>) -> Self {
        Self(inner)
    }

    /// Requests of the inner store, and by request the colours of a grey picture.
    fn inner_requests(&self, requests: &[Request]) -> Result<(Vec<Request>, Vec<Asked>)> {
        requests.iter().map(|request| self.inner_request(request)).collect()
    }

    fn inner_request(&self, request: &Request) -> Result<(Request, Asked)> {
        check_request(self, request)?;
        let Request { row, mut region } = *request;
        let grey = self.0.row_info(row)?.shape.c() < COLORS;
        let asked = grey.then(|| region.start[1]..region.start[1] + region.size[1]);
        if grey {
            (region.start[1], region.size[1]) = (0, 1);
        }
        Ok((Request { row, region }, asked))
    }
}

/// The colours that are asked for of a grey picture; `None` of a coloured one.
type Asked = Option<std::ops::Range<usize>>;

/// Hands grey pixels on once per colour asked for, and coloured ones as they are.
struct Repeated<'a> {
    /// By request, the colours of a grey picture.
    asked: &'a [Asked],
    sink: &'a mut dyn PixelSink,
}

impl PixelSink for Repeated<'_> {
    fn put(&mut self, request: usize, block: &Block<'_>) -> Result<()> {
        let Some(colors) = self.asked[request].clone() else { return self.sink.put(request, block) };
        let Region { start, size } = block.region;
        // The second channel of grey with transparency.
        if start[1] > 0 {
            return Ok(());
        }
        let channel = size[2] * size[3] * size[4] * block.dtype.size();
        for (time, data) in block.data.chunks_exact((size[1] * channel).max(1)).enumerate() {
            for color in colors.clone() {
                let region = Region {
                    start: [start[0] + time, color, start[2], start[3], start[4]],
                    size: [1, 1, size[2], size[3], size[4]],
                };
                self.sink.put(request, &Block { region, data: &data[..channel], dtype: block.dtype })?;
            }
        }
        Ok(())
    }

    fn mark_unmasked(&mut self, request: usize, unmasked: &Block<'_>) {
        self.sink.mark_unmasked(request, unmasked);
    }
}

impl Store for Colors {
    delegate_store!(self => self.0; format, path, remote_path, len, name);
    delegate_store!(self => self.0; layout, files, files_of, has_checksums, row_hints, heads);
    // Row by row, since a scan of the inner store tells its own number of channels.
    default_answers!(scan);

    fn check(&self, request: &Request) -> Result<RowInfo> {
        let (inner, _) = self.inner_request(request)?;
        self.0.check(&inner)?;
        self.row_info(request.row)
    }

    fn row_info(&self, row: usize) -> Result<RowInfo> {
        let RowInfo { shape: Shape([t, _, z, y, x]), dtype } = self.0.row_info(row)?;
        Ok(RowInfo { shape: Shape([t, COLORS, z, y, x]), dtype })
    }

    /// A grey picture's channels are called as those of coloured ones, or a batch of both would seem to mix channels.
    fn metadata(&self, row: usize) -> Result<ImageMetadata> {
        let mut metadata = self.0.metadata(row)?;
        if self.0.row_info(row)?.shape.c() < COLORS {
            let named = |(number, name): (usize, &str)| Channel {
                id: format!("Channel:0:{number}"),
                name: name.to_owned(),
                ..Channel::default()
            };
            metadata.channels = NAMES.into_iter().enumerate().map(named).collect();
        }
        metadata.channels.truncate(COLORS);
        Ok(metadata)
    }

    fn hints(&self) -> Hints<'_> {
        let inner = self.0.hints();
        // With one channel or two, all colours are the first.
        let has_colors = || self.0.row_info(0).is_ok_and(|info| info.shape.c() >= COLORS);
        Hints { is_last_mask: inner.is_last_mask && has_colors(), ..inner }
    }

    fn ranges(&self, requests: &[Request], wanted: &mut WantedRanges) -> Result<()> {
        self.0.ranges(&self.inner_requests(requests)?.0, wanted)
    }

    fn read(&self, requests: &[Request], scratch: &mut Scratch, sink: &mut dyn PixelSink) -> Result<()> {
        let (inner, asked) = self.inner_requests(requests)?;
        self.0.read(&inner, scratch, &mut Repeated { asked: &asked, sink })
    }
}
