//! Descriptions of image stacks by ImageJ and by tifffile, in the first page's `ImageDescription`.
//!
//! ImageJ: lines `key=value`; `channels`, `slices` and `frames` count planes stored in the order T, Z, C, or as `order` says
//! (fastest first, `czt` by default).
//! tifffile ("shaped"): JSON, `{"shape": [2, 3, 4, 40, 40], "axes": "TCZYX", "name": "a"}`; without axes, five dimensions
//! are taken as TCZYX, four as CZYX and three as ZYX. The samples of colour pages are channels.
//! Both may describe only their first page and let the others follow it without directories.
//! MetaMorph (STK): a tag has a value for each plane, and only the first has a directory.

use super::axes::{C, T, Z};
use super::ifd::FileView;
use super::image::Page;
use super::pages::RawPage;
use super::series::{Series, image_of_samples};
use crate::Result;
use wellread_image::{Channel, ImageMetadata, PhysicalSize, TimeIncrement, ome_xml};

/// The value of `key` in an ImageJ description.
fn value<'d>(description: &'d str, key: &str) -> Option<&'d str> {
    description.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).map(str::trim)
}

/// Makes `n` pages of the first one when it is stored as it is and the others follow it.
///
/// # Errors
/// When the file ends before the last of them.
fn extend(view: &FileView<'_>, pages: &mut Vec<Page>, at: usize, n: usize) -> Result<bool> {
    let Some(bytes) = pages[at].contiguous_bytes() else { return Ok(false) };
    let start = pages[at].segments[0].offset;
    let end = bytes.checked_mul(n as u64).and_then(|b| b.checked_add(start));
    if end.is_none_or(|end| end > view.len()) {
        return Err(view
            .error(format_args!(
                "{n} planes of {bytes} bytes are described, but the file ends at {} bytes",
                view.len()
            ))
            .hint("the file is truncated, or its description was taken over from another file"));
    }
    let more: Vec<Page> = (1..n as u64).map(|i| pages[at].moved(i * bytes)).collect();
    let rest = pages.split_off(at + 1);
    pages.extend(more);
    pages.extend(rest);
    Ok(true)
}

/// The image of an ImageJ stack; `None` when the description does not fit the pages.
pub(super) fn image_j(
    view: &FileView<'_>,
    description: &str,
    pages: &mut Vec<Page>,
) -> Result<Option<Series>> {
    let count = |key| value(description, key).map_or(Some(1), |v| v.parse::<usize>().ok().filter(|&n| n > 0));
    // As for tifffile, a description that does not count its images has as many as pages.
    let images = if value(description, "images").is_some() { count("images") } else { Some(pages.len()) };
    let (Some(images), Some(c), Some(z), Some(t)) =
        (images, count("channels"), count("slices"), count("frames"))
    else {
        return Ok(None);
    };
    let declared = c.checked_mul(z).and_then(|n| n.checked_mul(t));
    // Without a word on what they are, images are slices.
    let (c, z, t) = if declared == Some(images) { (c, z, t) } else { (1, images, 1) };
    if pages.len() == 1 && images > 1 {
        if !extend(view, pages, 0, images)? {
            return Ok(None);
        }
    } else if pages.len() != images || pages.iter().any(|p| !p.alike(&pages[0])) {
        return Ok(None);
    }
    let mut axes = stored_order(description).map(|axis| (axis, [t, c, z][axis])).to_vec();
    axes.push((C, pages[0].format.samples));
    Ok(Some(image_of_samples(&pages[0], 0, &axes, view.len())))
}

/// The image of a stack of MetaMorph of so many planes; `None` where the file has a directory for each, or is compressed.
pub(super) fn meta_morph(
    view: &FileView<'_>,
    planes: usize,
    pages: &mut Vec<Page>,
) -> Result<Option<Series>> {
    if planes < 2 || pages.len() > 1 || !extend(view, pages, 0, planes)? {
        return Ok(None);
    }
    let axes = [(Z, planes), (C, pages[0].format.samples)];
    Ok(Some(image_of_samples(&pages[0], 0, &axes, view.len())))
}

/// The axes of an ImageJ stack, slowest first.
fn stored_order(description: &str) -> [usize; 3] {
    match value(description, "order").unwrap_or_default().to_ascii_lowercase().as_str() {
        "ctz" => [Z, T, C],
        "zct" => [T, C, Z],
        "ztc" => [C, T, Z],
        "tcz" => [Z, C, T],
        "tzc" => [C, Z, T],
        // `default`, and whatever is none, as for tifffile.
        _ => [T, Z, C],
    }
}

/// Sizes of pixels from an ImageJ description and the resolution tags.
pub(super) fn image_j_sizes(description: &str, resolution: [Option<f64>; 2], metadata: &mut ImageMetadata) {
    let unit = value(description, "unit").map(|unit| unit.replace("\\u00B5", "µ"));
    let unit = unit.as_deref().and_then(ome_xml::canonical_unit);
    // Pixels are no length.
    let Some(unit) = unit.filter(|unit| ome_xml::micrometres(1.0, unit).is_some()) else { return };
    let size = |value: f64| Some(PhysicalSize { value, unit: unit.to_owned() });
    metadata.physical_size_x = resolution[0].and_then(|r| size(1.0 / r));
    metadata.physical_size_y = resolution[1].and_then(|r| size(1.0 / r));
    metadata.physical_size_z = value(description, "spacing")
        .and_then(|s| s.parse::<f64>().ok())
        .filter(|s| s.is_finite() && *s > 0.0)
        .and_then(size);
}

/// Channels that are called as their planes are labelled in ImageJ; `labels` are in the order of pages. There are none where planes of a
/// channel differ, a channel has no label, or two have the same. Such labels tell slices, or the file.
pub(super) fn image_j_channels(labels: &[String], image: &Series) -> Vec<Channel> {
    let Ok(info) = &image.info else { return vec![] };
    let [_, count, depth, ..] = info.shape.0;
    if count < 2 || image.samples > 1 {
        return vec![];
    }
    let mut names = vec![""; count];
    // Planes are in the order T, C, Z.
    for (number, plane) in image.planes.iter().enumerate() {
        let label = labels.get(plane.page as usize).map_or("", String::as_str);
        let name = &mut names[number / depth % count];
        if name.is_empty() {
            *name = label;
        } else if !label.is_empty() && label != *name {
            return vec![];
        }
    }
    let is_own = |(channel, name): (usize, &&str)| !name.is_empty() && !names[..channel].contains(name);
    if !names.iter().enumerate().all(is_own) {
        return vec![];
    }
    names.iter().map(|&name| Channel { name: name.to_owned(), ..Channel::default() }).collect()
}

/// The time between frames from an ImageJ description: `finterval`, in seconds or in the unit `tunit`.
pub(super) fn image_j_interval(description: &str) -> Option<TimeIncrement> {
    let step = value(description, "finterval")?.parse::<f64>().ok();
    let step = step.filter(|step| step.is_finite() && *step > 0.0)?;
    let unit = value(description, "tunit").filter(|unit| !unit.is_empty()).unwrap_or("s");
    let unit = ome_xml::canonical_time_unit(unit)?;
    Some(TimeIncrement { value: step, unit: unit.to_owned() })
}

/// TIFF's `2026:11:21 05:38:56` in ISO 8601.
pub(super) fn iso_time(text: &str) -> Option<String> {
    let text = text.trim();
    let pattern = b"0000:00:00 00:00:00";
    let fits = text.len() == pattern.len()
        && text.bytes().zip(pattern).all(|(b, &p)| if p == b'0' { b.is_ascii_digit() } else { b == p });
    (fits && !text.starts_with("0000"))
        .then(|| format!("{}-{}-{}T{}", &text[..4], &text[5..7], &text[8..10], &text[11..]))
}

/// tifffile's JSON.
#[derive(serde::Deserialize)]
struct Shaped {
    shape: Vec<usize>,
    #[serde(default)]
    axes: Option<String>,
    /// tifffile's name of the series.
    #[serde(default)]
    name: serde_json::Value,
}

impl Shaped {
    /// The description without axes of length 1 behind Y and X. tifffile lists them in its shape and writes pages without them.
    fn without_trailing_ones(mut self, page: &Page) -> Self {
        let format = &*page.format;
        let plane = [format.height, format.width];
        let given = self.shape.len();
        while format.samples == 1 && !self.shape.ends_with(&plane) && self.shape.last() == Some(&1) {
            self.shape.pop();
        }
        let left = self.shape.len();
        let named = |axes: String| {
            if axes.chars().count() == given { axes.chars().take(left).collect() } else { axes }
        };
        self.axes = self.axes.map(named);
        self
    }

    /// The named axes, if these end otherwise than with Y and X: then lines of pages are no lines of the image.
    fn turned(&self, page: &Page) -> Option<&str> {
        let axes = self.axes.as_deref().filter(|a| a.chars().count() == self.shape.len())?;
        let is_chunky = page.format.samples > 1 && !page.format.planar;
        let planes = if is_chunky { axes.strip_suffix(['S', 'C', 's', 'c']).unwrap_or(axes) } else { axes };
        let ends = planes.to_ascii_uppercase();
        (planes.len() > 1 && !ends.ends_with("YX") && ends.contains('Y') && ends.contains('X'))
            .then_some(axes)
    }

    /// The stored axes beside Y and X, slowest first, for pages like `page`; `None` if they do not fit.
    fn axes(&self, page: &Page) -> Option<Vec<(usize, usize)>> {
        let format = &*page.format;
        let samples = format.samples;
        let chunky = samples > 1 && !format.planar;
        let mut shape = self.shape.as_slice();
        let mut letters = self.axes.as_deref().filter(|a| a.chars().count() == shape.len());
        if chunky {
            shape = shape.strip_suffix(&[samples])?;
            letters = letters.map(|a| a.strip_suffix(['S', 'C']).unwrap_or("")).filter(|a| !a.is_empty());
        }
        let leading = shape.strip_suffix(&[format.height, format.width])?;
        let letters = letters.and_then(|a| a.strip_suffix("YX"));
        let mut axes: Vec<(usize, usize)> = if let Some(letters) = letters {
            let axis = |letter| match letter {
                'T' => T,
                'C' | 'S' => C,
                _ => Z,
            };
            letters.chars().map(axis).zip(leading.iter().copied()).collect()
        } else {
            let known: &[usize] = match (leading.len(), chunky, format.planar) {
                (0, ..) => &[],
                (1, _, true) => &[C],
                (1, ..) => &[Z],
                (2, _, true) => &[Z, C],
                (2, true, _) => &[T, Z],
                (2, ..) => &[C, Z],
                _ => &[T, C, Z],
            };
            let extra = leading.len() - known.len();
            std::iter::repeat_n(T, extra).chain(known.iter().copied()).zip(leading.iter().copied()).collect()
        };
        if chunky {
            axes.push((C, samples));
        }
        axes.iter().all(|&(_, n)| n > 0).then_some(axes)
    }
}

/// The images of a file written by tifffile; `None` when a description does not fit its pages.
pub(super) fn shaped(
    view: &FileView<'_>,
    raw: &[RawPage],
    pages: &mut Vec<Page>,
) -> Result<Option<Vec<Series>>> {
    let mut images = Vec::new();
    // Directories and pages: `extend` makes pages that have no directory.
    let (mut ifd, mut at) = (0, 0);
    while let Some(first) = raw.get(ifd) {
        let Some(Ok(description)) = first.shaped.as_deref().map(serde_json::from_str::<Shaped>) else {
            return Ok(None);
        };
        let description = description.without_trailing_ones(&first.page);
        let own = 1 + raw[ifd + 1..].iter().take_while(|r| r.shaped.is_none()).count();
        if first.secondary && !images.is_empty() {
            // A level of a pyramid, which has a description of its own.
            ifd += own;
            at += own;
            continue;
        }
        if let Some(axes) = description.turned(&first.page) {
            let cause = format_args!("its axes are {axes}: the last two of the pages must be YX");
            return Err(view
                .error(cause)
                .hint("write it with its axes in an order that ends with YX, as of np.moveaxis"));
        }
        let Some(axes) = description.axes(&first.page) else { return Ok(None) };
        let samples = first.page.format.samples;
        let total = axes.iter().try_fold(1usize, |n, &(_, size)| n.checked_mul(size));
        let Some(n) = total.filter(|n| n % samples == 0).map(|n| n / samples) else { return Ok(None) };
        let following = &raw[ifd..ifd + own];
        if n <= own {
            // Reduced copies may follow the planes of an image, nothing else.
            let (planes, rest) = following.split_at(n);
            if planes.iter().any(|r| !r.page.alike(&first.page)) || rest.iter().any(|r| !r.secondary) {
                return Ok(None);
            }
        } else if own > 1 || !extend(view, pages, at, n)? {
            return Ok(None);
        }
        let image = image_of_samples(&first.page, at, &axes, view.len());
        images.push(Series { name: description.name.as_str().map(Into::into), ..image });
        ifd += own;
        at += n.max(own);
    }
    Ok(Some(images))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_iso() {
        assert_eq!(iso_time("2026:11:21 05:38:56").as_deref(), Some("2026-11-21T05:38:56"));
        assert_eq!(iso_time("0000:00:00 00:00:00"), None);
        assert_eq!(iso_time("21 November 2026"), None);
    }

    #[test]
    fn planes_of_image_j_lie_as_it_says() {
        for (order, axes) in [
            ("", [T, Z, C]),
            ("order=zct", [T, C, Z]),
            ("order=TZC", [C, Z, T]),
            ("order=default", [T, Z, C]),
        ] {
            assert_eq!(stored_order(&format!("ImageJ=1.53t\nimages=6\n{order}\n")), axes, "{order}");
        }
    }

    #[test]
    fn image_j_values() {
        let description = "ImageJ=1.53t\nimages=6\nslices=2\nunit=micron\nspacing=0.5\n";
        assert_eq!(value(description, "slices"), Some("2"));
        assert_eq!(value(description, "frames"), None);
        let mut metadata = ImageMetadata::default();
        image_j_sizes(description, [Some(4.0), None], &mut metadata);
        assert_eq!(metadata.physical_size_x.map(|s| s.value), Some(0.25));
        assert_eq!(metadata.physical_size_y, None);
        assert_eq!(metadata.physical_size_z.map(|s| s.value), Some(0.5));
    }

    #[test]
    fn frames_of_image_j_have_an_interval() {
        let of = |lines: &str| {
            let step = image_j_interval(&format!("ImageJ=1.53t\nframes=3\n{lines}\nloop=false\n"));
            step.map(|step| (step.value, step.unit))
        };
        assert_eq!(of("finterval=2.5"), Some((2.5, "s".to_owned())));
        assert_eq!(of("unit=um\nfinterval=3.0E-1\ntunit=min"), Some((0.3, "min".to_owned())));
        for none in
            ["", "finterval=0", "finterval=-1", "finterval=NaN", "finterval=x", "finterval=2\ntunit=moon"]
        {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn sizes_have_units_that_are_lengths() {
        let unit = |text: &str| {
            let mut metadata = ImageMetadata::default();
            image_j_sizes(&format!("ImageJ=1.53t\nunit={text}\n"), [Some(4.0); 2], &mut metadata);
            metadata.physical_size_y.map(|size| size.unit)
        };
        let known = ["micron", "\\u00B5m", "\u{3bc}m", "nm", "cm", "inch"].map(unit);
        assert_eq!(known, ["µm", "µm", "µm", "nm", "cm", "in"].map(|unit| Some(unit.to_owned())));
        assert_eq!(["pixel", "furlong", ""].map(unit), [None, None, None]);
    }
}
