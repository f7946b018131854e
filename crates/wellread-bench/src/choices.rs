//! Choices by name: on the command line, in [`crate::Config`], and in the columns of the tables.
//!
//! Each is an enum whose [`Display`](fmt::Display), [`FromStr`] and serialised form are the same name. So an
//! unknown name is an error where it is typed, never a silent default later.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use wellread_loader::Transform;
use wellread_report::Cell;

/// A name that is none of those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    given: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {:?}; there are {}", self.given, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

macro_rules! choice {
    ($(#[$about:meta])* $choice:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
        pub enum $choice {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl $choice {
            /// All of them, in the order of tables and figures.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the command line and in tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $choice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $choice {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                Self::ALL.iter().copied().find(|choice| choice.name() == name).ok_or_else(|| UnknownName {
                    given: name.to_owned(),
                    known: Self::ALL.iter().map(|choice| choice.name()).collect(),
                })
            }
        }

        impl From<$choice> for Cell {
            fn from(choice: $choice) -> Self {
                Self::from(choice.name())
            }
        }
    };
}

choice! {
    /// Order in which images are asked for.
    Access {
        /// As they are stored.
        Sequential = "sequential",
        /// Any order.
        Random = "random",
        /// Blocks of neighbours, the blocks in any order.
        Grouped = "grouped",
        /// The same, and the images of several blocks in any order among each other.
        Block = "block",
    }
}

choice! {
    /// A transform of the loader ([`Transform::PRESETS`]).
    Preset {
        /// Scaled to `[0, 1]`.
        None = "none",
        /// Then normalised.
        Normalize = "normalize",
        /// Scaled, flipped, turned.
        Augment = "augment",
    }
}

impl Preset {
    /// The transform, where the loader has it.
    pub fn transform(self) -> Option<Transform> {
        Transform::preset(self.name())
    }
}

/// A transform of track 1: a [`Preset`], or one of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SampleTransform {
    /// One of the loader's.
    Preset(Preset),
    /// `python:package.module:Class`, for frameworks in Python.
    User(String),
}

impl fmt::Display for SampleTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(preset) => preset.fmt(f),
            Self::User(name) => f.pad(name),
        }
    }
}

impl FromStr for SampleTransform {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match in_python(name, "transform") {
            Some(checked) => checked.map(|()| Self::User(name.to_owned())),
            None => name.parse().map(Self::Preset).map_err(|e: UnknownName| {
                format!("{e}, and with --framework pytorch or jax python:package.module:Class")
            }),
        }
    }
}

/// Whether a module and something in it follow, for a name that begins with `python:`; `None` for others. `what` it is
/// to be is for the message.
pub fn in_python(name: &str, what: &str) -> Option<Result<(), String>> {
    let place = name.strip_prefix("python:")?;
    Some(match place.split_once(':') {
        Some((module, class)) if !module.is_empty() && !class.is_empty() && !class.contains(':') => Ok(()),
        _ => Err(format!("{name:?} is no {what}; write python:package.module:Class")),
    })
}

choice! {
    /// The work of a model in a step.
    Mode {
        /// Forward, backward, update.
        Train = "train",
        /// Forward.
        Inference = "inference",
    }
}

choice! {
    /// The program that runs a benchmark's loops.
    Framework {
        /// This program.
        Rust = "rust",
        /// PyTorch, in Python.
        Pytorch = "pytorch",
        /// JAX, in Python.
        Jax = "jax",
    }
}

choice! {
    /// The operation on a stored set.
    Operation {
        /// Writing it.
        Write = "write",
        /// Opening it.
        Open = "open",
        /// Reading all of it in order.
        ReadAll = "read_all",
        /// Reading some images picked at random.
        ReadRandom = "read_random",
        /// Reading the bytes of its files, nothing decoded: the least cost of reading images.
        ReadFiles = "read_files",
    }
}

choice! {
    /// The settings that the storage benchmark sweeps over besides the sets as they are.
    Sweep {
        /// Codecs.
        Compression = "compression",
        /// Chunk layouts of volumes.
        Layout = "layout",
    }
}

choice! {
    /// Where a format puts a codec.
    CompressedBy {
        /// In the payload of every chunk (a Zarr chunk, a strip of a TIFF).
        Chunk = "chunk",
        /// Around the values of a column, whatever they are (a page of a Parquet column).
        Container = "container",
        /// Around an image, which is a file.
        File = "file",
    }
}

choice! {
    /// How a volume is cut into chunks.
    ChunkLayout {
        /// A chunk per plane.
        ZPlane = "z-plane",
        /// Boxes of 16 x 128 x 128 pixels along Z, Y, X.
        Block = "block",
        /// A chunk per volume.
        Volume = "volume",
    }
}

choice! {
    /// The part of a volume that is read.
    Extent {
        /// All of it: every plane of a channel at a time.
        Volume = "read_volume",
        /// One of its planes.
        Plane = "read_plane",
        /// A box of 16 x 64 x 64 pixels along Z, Y, X.
        SubVolume = "read_sub_volume",
    }
}

choice! {
    /// Whether the operating system has the files in memory.
    PageCache {
        /// As earlier runs left them: in memory, if they fit.
        Warm = "warm",
        /// Dropped before, and seen to be gone.
        Cold = "cold",
        /// Past the page cache, whatever is in it (`O_DIRECT`): for the bytes of files only, since no reader of a
        /// format reads so.
        Direct = "direct",
    }
}

choice! {
    /// How a host array becomes a tensor.
    TensorPath {
        /// The backend copies a slice.
        Copy = "copy",
        /// The backend takes the array itself.
        ZeroCopy = "zero_copy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for access in Access::ALL {
            assert_eq!(access.to_string().parse(), Ok(*access));
            assert_eq!(serde_json::to_value(access).unwrap(), access.name());
        }
        let unknown = "Random".parse::<Access>().unwrap_err().to_string();
        assert_eq!(unknown, "unknown \"Random\"; there are sequential, random, grouped, block");
    }

    #[test]
    fn a_transform_is_a_preset_or_named_in_python() {
        assert_eq!("augment".parse(), Ok(SampleTransform::Preset(Preset::Augment)));
        let own = "python:my.transforms:Blur";
        assert_eq!(own.parse(), Ok(SampleTransform::User(own.to_owned())));
        assert_eq!(own.parse::<SampleTransform>().unwrap().to_string(), own);
        for wrong in ["python:", "python:a", "python::A", "python:a:", "python:a:B:C"] {
            let said = wrong.parse::<SampleTransform>().unwrap_err();
            assert_eq!(said, format!("{wrong:?} is no transform; write python:package.module:Class"));
        }
        let said = "blur".parse::<SampleTransform>().unwrap_err();
        assert!(said.contains("none, normalize, augment, and with --framework pytorch"), "{said}");
    }

    #[test]
    fn presets_are_those_of_the_loader() {
        let names: Vec<_> = Preset::ALL.iter().map(|p| p.name()).collect();
        assert_eq!(names, Transform::PRESETS);
        assert!(Preset::ALL.iter().all(|p| p.transform().is_some()));
    }
}
