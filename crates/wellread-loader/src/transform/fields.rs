//! Illumination fields of many files, told by columns beside the images: one for each plate and channel.
//!
//! ```text
//!   illum/{Metadata_Plate}/{Metadata_Plate}_Illum{channel}.npy
//!      │ channel by channel                                       row by row
//!      ▼                                                          ▼
//!   illum/{Metadata_Plate}/{Metadata_Plate}_IllumDNA.npy ──▶ illum/BR1/BR1_IllumDNA.npy
//! ```
//!
//! `{channel}` is the channel's name, `{channel:1}` its number where the first is 1 (or whatever number stands there). It is put in first,
//! so that it may be part of a column's name: `{PathName_Illum{channel}}/{FileName_Illum{channel}}` are the columns of CellProfiler's
//! `load_data.csv`. Where fields are given by the names of channels, each channel has a pattern of its own.

use super::error::TransformError;

/// Where the field of each plate and channel lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFields(Patterns);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Patterns {
    /// One for all channels.
    All(Pattern),
    /// One for the channel of each name.
    Named(Vec<(String, Pattern)>),
}

/// The pattern of flat fields, and of dark fields.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    flat: String,
    dark: Option<String>,
}

/// A part of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// As it stands.
    Text(String),
    /// The value of a column.
    Column(String),
}

/// Where the fields of a channel lie: flat field and dark field.
pub(crate) type ChannelPaths = (Vec<Piece>, Option<Vec<Piece>>);

impl GroupFields {
    /// By a pattern of paths of flat fields, and one of dark fields, which may be a path as it is.
    ///
    /// # Errors
    /// Braces that are not closed, or nothing in them.
    pub fn new(
        flat: impl Into<String>,
        dark: Option<impl Into<String>>,
    ) -> std::result::Result<Self, TransformError> {
        let pattern = Pattern { flat: flat.into(), dark: dark.map(Into::into) };
        pattern.check()?;
        Ok(Self(Patterns::All(pattern)))
    }

    /// By the names of channels, in whichever order images have them. Each has a path of its flat field, and one of its dark field,
    /// which may be patterns. Every channel that is delivered needs one.
    ///
    /// ```
    /// use wellread_loader::GroupFields;
    /// let fields = [("DNA", "illum/dna.npy", None), ("ER", "illum/{Metadata_Plate}/er.npy", None::<&str>)];
    /// assert!(GroupFields::by_name(fields).is_ok());
    /// ```
    ///
    /// # Errors
    /// No channel, or one twice; braces that are not closed, or nothing in them.
    pub fn by_name(
        channels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>, Option<impl Into<String>>)>,
    ) -> std::result::Result<Self, TransformError> {
        let mut named: Vec<(String, Pattern)> = vec![];
        for (name, flat, dark) in channels {
            let (name, pattern) = (name.into(), Pattern { flat: flat.into(), dark: dark.map(Into::into) });
            pattern.check()?;
            if named.iter().any(|(other, _)| *other == name) {
                return Err(TransformError::new(
                    format!("the channel {name:?} has two illumination fields"),
                    "give each channel one",
                ));
            }
            named.push((name, pattern));
        }
        if named.is_empty() {
            return Err(TransformError::new(
                "no channel has an illumination field",
                "name each channel with the path of its field",
            ));
        }
        Ok(Self(Patterns::Named(named)))
    }

    /// Whether a path is a pattern of some.
    pub fn is_pattern(path: &str) -> bool {
        path.contains('{')
    }

    /// Whether the fields of channels are told apart, so that each is a plane of its own.
    pub(crate) fn has_channels(&self) -> bool {
        match &self.0 {
            Patterns::All(pattern) => {
                pattern.any(|text| text.contains("{channel}") || text.contains("{channel:"))
            }
            Patterns::Named(_) => true,
        }
    }

    /// Whether channels are told by their names.
    pub(crate) fn has_names(&self) -> bool {
        match &self.0 {
            Patterns::All(pattern) => pattern.any(|text| text.contains("{channel}")),
            Patterns::Named(_) => true,
        }
    }

    /// Whether paths have the numbers of channels.
    pub(crate) fn has_numbers(&self) -> bool {
        let has = |pattern: &Pattern| pattern.any(|text| text.contains("{channel:"));
        match &self.0 {
            Patterns::All(pattern) => has(pattern),
            Patterns::Named(named) => named.iter().any(|(_, pattern)| has(pattern)),
        }
    }

    /// The paths of a channel, counted from 0.
    ///
    /// # Errors
    /// A channel without the name that is asked for, or of another name; a pattern that is none, in words.
    pub(crate) fn of_channel(&self, name: Option<&str>, number: usize) -> Result<ChannelPaths, String> {
        let named = match &self.0 {
            Patterns::All(pattern) => return pattern.of_channel(name, number),
            Patterns::Named(named) => named,
        };
        let name = name.ok_or_else(|| {
            format!("illumination fields are given by the names of channels, and channel {number} has none")
        })?;
        if let Some((_, pattern)) = named.iter().find(|(other, _)| other == name) {
            return pattern.of_channel(Some(name), number);
        }
        let given: Vec<String> = named.iter().map(|(name, _)| format!("{name:?}")).collect();
        Err(format!("no illumination field is given for the channel {name:?}, but for {}", given.join(", ")))
    }
}

impl Pattern {
    /// Whether it is one.
    fn check(&self) -> Result<(), TransformError> {
        let named = self.of_channel(Some("channel"), 0);
        named.map(drop).map_err(|cause| {
            TransformError::new(
                cause,
                "write it as illum/{Metadata_Plate}/{Metadata_Plate}_Illum{channel}.npy",
            )
        })
    }

    fn any(&self, is: impl Fn(&str) -> bool) -> bool {
        is(&self.flat) || self.dark.as_deref().is_some_and(is)
    }

    fn of_channel(&self, name: Option<&str>, number: usize) -> Result<ChannelPaths, String> {
        let pieces = |text: &String| pieces(&with_channel(text, name, number)?);
        Ok((pieces(&self.flat)?, self.dark.as_ref().map(pieces).transpose()?))
    }
}

/// The text with the channel put in.
fn with_channel(text: &str, name: Option<&str>, number: usize) -> Result<String, String> {
    const START: &str = "{channel";
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(START) {
        out += before;
        if let Some(after) = after.strip_prefix('}') {
            out += name.ok_or_else(|| {
                format!(
                    "{text:?} has {{channel}}, and channel {number} has no name: {{channel:0}} is its number"
                )
            })?;
            rest = after;
        } else if let Some((first, after)) = after.strip_prefix(':').and_then(|after| after.split_once('}')) {
            let first: usize = first.parse().map_err(|_| {
                format!("{text:?} has {{channel:{first}}}, where the number of the first channel belongs")
            })?;
            out += &number.saturating_add(first).to_string();
            rest = after;
        } else {
            // A column whose name begins so.
            out += START;
            rest = after;
        }
    }
    Ok(out + rest)
}

/// A text as what stands and columns.
fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let (mut found, mut rest) = (vec![], text);
    while let Some((before, after)) = rest.split_once('{') {
        let (column, after) =
            after.split_once('}').ok_or_else(|| format!("{text:?} has a brace that is not closed"))?;
        if column.is_empty() || column.contains('{') {
            return Err(format!("{text:?} has {{{column}}}, which is no column"));
        }
        if !before.is_empty() {
            found.push(Piece::Text(before.to_owned()));
        }
        found.push(Piece::Column(column.to_owned()));
        rest = after;
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest.to_owned()));
    }
    if found.iter().any(|piece| matches!(piece, Piece::Text(text) if text.contains('}'))) {
        return Err(format!("{text:?} has a brace that is not opened"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[Piece]) -> String {
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Column(column) => format!("<{column}>"),
        };
        pieces.iter().map(show).collect()
    }

    #[test]
    fn patterns_are_put_together_channel_by_channel() {
        let of = |pattern: &str, name, number| {
            let fields = GroupFields::new(pattern, None::<String>).unwrap();
            fields.of_channel(name, number).map(|(flat, _)| shown(&flat))
        };
        assert_eq!(of("i/{P}/{P}_Illum{channel}.npy", Some("DNA"), 0).unwrap(), "i/<P>/<P>_IllumDNA.npy");
        assert_eq!(of("{P}_{channel:1}", None, 4).unwrap(), "<P>_5");
        assert_eq!(of("{Path_{channel}}/{File_{channel}}", Some("ER"), 0).unwrap(), "<Path_ER>/<File_ER>");
        assert_eq!(of("{channels}", None, 0).unwrap(), "<channels>");
        assert!(of("{channel}", None, 3).unwrap_err().contains("channel 3 has no name"));
        for wrong in ["{", "a{P", "{}", "{a{b}}", "{channel:x}"] {
            assert!(GroupFields::new(wrong, None::<String>).is_err(), "{wrong}");
            assert!(GroupFields::new("{P}", Some(wrong)).is_err(), "{wrong}");
        }
        assert!(GroupFields::new("{P}", Some("dark.tif")).is_ok());
    }

    #[test]
    fn channels_have_fields_by_their_names() {
        let fields =
            GroupFields::by_name([("ER", "er.npy", None), ("DNA", "{P}/{channel}.npy", Some("dark.npy"))]);
        let fields = fields.unwrap();
        assert!(fields.has_channels() && fields.has_names());
        let (flat, dark) = fields.of_channel(Some("DNA"), 0).unwrap();
        assert_eq!((shown(&flat), shown(&dark.unwrap())), ("<P>/DNA.npy".to_owned(), "dark.npy".to_owned()));
        let (flat, dark) = fields.of_channel(Some("ER"), 1).unwrap();
        assert_eq!((shown(&flat), dark), ("er.npy".to_owned(), None));
        let error = fields.of_channel(Some("RNA"), 2).unwrap_err();
        assert_eq!(error, "no illumination field is given for the channel \"RNA\", but for \"ER\", \"DNA\"");
        assert!(fields.of_channel(None, 2).unwrap_err().contains("channel 2 has none"));
        let wrong = |channels: &[(&str, &str)]| {
            let channels = channels.iter().map(|&(name, flat)| (name, flat, None::<String>));
            GroupFields::by_name(channels).unwrap_err().cause
        };
        assert!(wrong(&[]).contains("no channel"));
        assert!(wrong(&[("DNA", "a"), ("DNA", "b")]).contains("two illumination fields"));
        assert!(wrong(&[("DNA", "{a")]).contains("not closed"));
    }
}
