//! Builds TIFF files tag by tag, to have files that no sane writer makes.

/// One page: tags as (number, type, values), and the bytes of its strips or tiles.
#[derive(Clone, Default)]
pub struct Page {
    pub tags: Vec<(u16, u16, Vec<u64>)>,
    pub text: Option<String>,
    pub segments: Vec<Vec<u8>>,
    pub tiled: bool,
    pub no_counts: bool,
}

impl Page {
    /// A grey page of `bits` per sample, its rows in the given strips.
    pub fn grey(width: u64, height: u64, bits: u64, strips: &[&[u8]]) -> Self {
        Self {
            tags: vec![
                (256, 4, vec![width]),
                (257, 4, vec![height]),
                (258, 3, vec![bits]),
                (262, 3, vec![1]),
            ],
            segments: strips.iter().map(|s| s.to_vec()).collect(),
            ..Self::default()
        }
    }

    /// The page with a tag set.
    pub fn with(mut self, tag: u16, values: &[u64]) -> Self {
        self.tags.retain(|t| t.0 != tag);
        self.tags.push((tag, if tag == 273 { 4 } else { 3 }, values.to_vec()));
        self
    }

    /// The page with an image description.
    pub fn describe(mut self, text: &str) -> Self {
        self.text = Some(text.to_owned());
        self
    }
}

/// A classic TIFF: data first, then the directories.
pub fn tiff(little: bool, pages: &[Page]) -> Vec<u8> {
    let put = |out: &mut Vec<u8>, value: u64, n: usize| {
        if little {
            out.extend_from_slice(&value.to_le_bytes()[..n]);
        } else {
            out.extend_from_slice(&value.to_be_bytes()[8 - n..]);
        }
    };
    let mut out = if little { b"II".to_vec() } else { b"MM".to_vec() };
    put(&mut out, 42, 2);
    put(&mut out, 0, 4);
    let mut pointer = 4;
    for page in pages {
        let mut tags = page.tags.clone();
        let (mut offsets, mut counts) = (vec![], vec![]);
        for segment in &page.segments {
            // A sparse segment has neither place nor length.
            offsets.push(if segment.is_empty() { 0 } else { out.len() as u64 });
            counts.push(segment.len() as u64);
            out.extend_from_slice(segment);
        }
        let (o, c) = if page.tiled { (324, 325) } else { (273, 279) };
        if !tags.iter().any(|t| t.0 == o) {
            tags.push((o, 4, offsets));
        }
        if !page.no_counts && !tags.iter().any(|t| t.0 == c) {
            tags.push((c, 4, counts));
        }
        if let Some(text) = &page.text {
            tags.push((270, 2, text.bytes().chain([0]).map(u64::from).collect()));
        }
        tags.sort();
        if out.len() % 2 == 1 {
            out.push(0);
        }
        let mut table = vec![];
        put(&mut table, tags.len() as u64, 2);
        for (tag, kind, values) in &tags {
            let size = match kind {
                1 | 2 => 1,
                3 => 2,
                4 => 4,
                _ => 8,
            };
            put(&mut table, u64::from(*tag), 2);
            put(&mut table, u64::from(*kind), 2);
            put(&mut table, values.len() as u64, 4);
            let mut bytes = vec![];
            for &value in values {
                put(&mut bytes, value, size);
            }
            if bytes.len() <= 4 {
                bytes.resize(4, 0);
                table.extend(bytes);
            } else {
                put(&mut table, out.len() as u64, 4);
                out.extend(bytes);
                if out.len() % 2 == 1 {
                    out.push(0);
                }
            }
        }
        put(&mut table, 0, 4);
        let at = out.len() as u64;
        let mut link = vec![];
        put(&mut link, at, 4);
        out[pointer..pointer + 4].copy_from_slice(&link);
        out.extend(table);
        pointer = out.len() - 4;
    }
    out
}
