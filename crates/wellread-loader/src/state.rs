//! Where a training run is in its epoch: one small record, to be kept in a checkpoint.
//!
//! The order of an epoch is a function of seed, epoch and position, so the position that was reached is all there is to
//! know. It counts images of all ranks: another number of workers, of batches ahead, of ranks or another batch size
//! goes on from the same image. Where nodes have parts of their own, the order is a function of the ranks, nodes and
//! batch size as well. These then stand in the record, for each time that they changed within the epoch.

use crate::order::{NodeSharding, are_possible};
use serde::{Deserialize, Serialize};
use wellread_store::surface::{self, Surface};
use wellread_store::words::counted;
use wellread_store::{Error, Result};

/// Where an iteration is: [`Batches::state`](crate::Batches::state), [`Loader::resume`](crate::Loader::resume).
///
/// It also tells which images, order and seed it belongs to, so that it is refused where they are others. The
/// transform is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoaderState {
    version: u32,
    seed: u64,
    epoch: u64,
    position: u64,
    images: u64,
    /// Fingerprints, in hexadecimal.
    rows: String,
    order: String,
    /// How the epoch was sharded, where nodes have parts of their own.
    #[serde(default, rename = "deals", skip_serializing_if = "Vec::is_empty")]
    shardings: Vec<NodeSharding>,
}

/// The values that a state must agree with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) seed: u64,
    pub(crate) images: usize,
    pub(crate) rows: u64,
    pub(crate) order: u64,
}

impl LoaderState {
    /// Raised when the record changes, and when what a seed means does.
    const VERSION: u32 = 1;
    /// Longer texts are no states; a state has less than 250 bytes, and less than 150 for each sharding.
    const MAX_STATE_BYTES: usize = 4096;

    pub(crate) fn new(
        identity: &Identity,
        epoch: u64,
        position: usize,
        shardings: Vec<NodeSharding>,
    ) -> Self {
        Self {
            version: Self::VERSION,
            seed: identity.seed,
            epoch,
            position: position as u64,
            images: identity.images as u64,
            rows: format!("{:016x}", identity.rows),
            order: format!("{:016x}", identity.order),
            shardings,
        }
    }

    /// How the epoch was sharded: see [`crate::plan::Plan::shardings`].
    pub(crate) fn shardings(&self) -> &[NodeSharding] {
        &self.shardings
    }

    /// The epoch.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Images of the epoch's order that all ranks together are past.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// As one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts are JSON")
    }

    /// From [`Self::to_json`].
    ///
    /// # Errors
    /// A text that is no state, or one of a newer version.
    pub fn from_json(text: &str) -> Result<Self> {
        let error = |cause: &dyn std::fmt::Display| {
            let saved = match surface::current() {
                Surface::Python => "give the dictionary that loader.state_dict() returned",
                Surface::Rust | Surface::CommandLine => {
                    "give the JSON that an iteration's state was saved as"
                }
            };
            Error::new("loader state", cause).hint(saved)
        };
        if text.len() > Self::MAX_STATE_BYTES {
            return Err(error(&format_args!("{} bytes are too long for a state", text.len())));
        }
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| error(&format_args!("not JSON: {e}")))?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(version) if version == u64::from(Self::VERSION) => {
                serde_json::from_value(value).map_err(|e| error(&format_args!("not a loader's state: {e}")))
            }
            Some(version) => Err(Error::new(
                "loader state",
                format_args!("version {version} of the record, and this wellread knows {}", Self::VERSION),
            )
            .hint("resume with the version of wellread that saved it, or begin the epoch anew")),
            None => Err(error(&"not a loader's state: it has no version")),
        }
    }

    /// The position in the epoch, if the state belongs to these images in this order.
    pub(crate) fn check(&self, identity: &Identity, path: &std::path::Path) -> Result<usize> {
        let own = Self::new(identity, self.epoch, 0, vec![]);
        let error = |cause: &dyn std::fmt::Display, hint: &str| Err(Error::new(path, cause).hint(hint));
        if self.version != own.version {
            let [saved, known] = [self.version, own.version];
            return error(
                &format_args!("the loader's state is of version {saved}, and this wellread knows {known}"),
                "resume with the version of wellread that saved it, or begin the epoch anew",
            );
        }
        if self.rows != own.rows {
            return error(
                &"the loader's state was saved with other images",
                "resume with the set that the state was saved with, or begin the epoch anew",
            );
        }
        if self.images == own.images && self.order != own.order {
            return error(
                &"the loader's state was saved with another order or choice of rows",
                "build the loader with the same order, rows, groups, weights and kind of shard, or begin the epoch anew",
            );
        }
        if self.images != own.images {
            return error(
                &format_args!(
                    "the loader's state was saved with another order or choice of rows ({} in an epoch, not {})",
                    counted(self.images as usize, "image"),
                    own.images
                ),
                "build the loader with the same order, rows, groups, weights and kind of shard, or begin the epoch anew",
            );
        }
        if self.seed != own.seed {
            return error(
                &format_args!(
                    "the loader's state was saved with seed {}, and this one is {}",
                    self.seed, own.seed
                ),
                "build the loader with the same seed, or begin the epoch anew",
            );
        }
        match usize::try_from(self.position) {
            Ok(position) if !self.shardings.is_empty() && !are_possible(&self.shardings, position) => error(
                &"the loader's state names ranks and nodes that cannot have been",
                "the record is damaged; begin the epoch anew",
            ),
            Ok(position) if position <= identity.images => Ok(position),
            _ => error(
                &format_args!("the loader's state is at image {} of {}", self.position, self.images),
                "the record is damaged; begin the epoch anew",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;

    fn identity() -> Identity {
        Identity { seed: u64::MAX, images: 1000, rows: 0xabc, order: 7 }
    }

    #[test]
    fn a_state_survives_json_and_is_small() {
        let state = LoaderState::new(&identity(), u64::MAX - 1, 999, vec![]);
        let text = state.to_json();
        assert!(text.len() < 250 && !text.contains('\n'), "{text}");
        let back = LoaderState::from_json(&text).unwrap();
        assert_eq!(back, state);
        assert_eq!(back.check(&identity(), Path::new("set")).unwrap(), 999);
    }

    #[test]
    fn deals_survive_json_and_damaged_ones_are_refused() {
        let sharding = NodeSharding { first: 0, world: 4, nodes: 2, batch: usize::MAX, pad: true };
        let shardings = (0..16).map(|i| NodeSharding { first: i * 7, ..sharding }).collect();
        let state = LoaderState::new(&identity(), u64::MAX - 1, 999, shardings);
        let text = state.to_json();
        assert!(text.len() < 250 + 16 * 150, "{text}");
        let back = LoaderState::from_json(&text).unwrap();
        assert_eq!(back, state);
        assert_eq!(back.check(&identity(), Path::new("set")).unwrap(), 999);
        for (from, to) in
            [("\"world\":4", "\"world\":0"), ("\"nodes\":2", "\"nodes\":3"), ("\"first\":7,", "\"first\":0,")]
        {
            let damaged = LoaderState::from_json(&text.replacen(from, to, 1)).unwrap();
            let error = damaged.check(&identity(), Path::new("set")).unwrap_err().to_string();
            assert!(error.contains("cannot have been"), "{error}");
        }
        assert!(LoaderState::from_json(&text.replace("\"first\":0", "\"first\":-1")).is_err());
        // The record of an epoch that all ranks divide has none.
        assert!(!LoaderState::new(&identity(), 3, 10, vec![]).to_json().contains("deals"));
    }

    #[test]
    fn states_of_others_are_refused() {
        let state = LoaderState::new(&identity(), 3, 10, vec![]);
        let refusal = |identity: Identity| state.check(&identity, Path::new("set")).unwrap_err().to_string();
        assert!(
            refusal(Identity { seed: 1, ..identity() }).contains("with seed 18446744073709551615, and this")
        );
        assert!(refusal(Identity { rows: 1, ..identity() }).contains("other images"));
        let other = refusal(Identity { order: 1, ..identity() });
        assert!(other.contains("another order") && !other.contains("not 1000"), "{other}");
        assert!(refusal(Identity { images: 9, ..identity() }).contains("1000 images in an epoch, not 9"));
        let far = LoaderState { position: 1001, ..state.clone() };
        assert!(
            far.check(&identity(), Path::new("set")).unwrap_err().to_string().contains("image 1001 of 1000")
        );
        let newer = state.to_json().replace("\"version\":1", "\"version\":2");
        assert!(LoaderState::from_json(&newer).unwrap_err().to_string().contains("version 2"));
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for text in ["", "{}", "[1]", "null", r#"{"version":1}"#, r#"{"version":"x"}"#, &"[".repeat(4000)] {
            let error = LoaderState::from_json(text).unwrap_err().to_string();
            assert!(error.starts_with("loader state: not "), "{error}");
        }
        assert!(LoaderState::from_json(&" ".repeat(5000)).unwrap_err().to_string().contains("too long"));
        let text = LoaderState::new(&identity(), 3, 10, vec![]).to_json();
        for end in 0..text.len() {
            assert!(LoaderState::from_json(&text[..end]).is_err());
        }
    }

    proptest! {
        /// A damaged record is refused or stays within the epoch, and never panics.
        #[test]
        fn flipped_bytes_do_no_harm(at in 0usize..200, to in 32u8..127) {
            let mut text = LoaderState::new(&identity(), 3, 10, vec![]).to_json().into_bytes();
            let at = at % text.len();
            text[at] = to;
            if let Ok(state) = LoaderState::from_json(std::str::from_utf8(&text).unwrap())
                && let Ok(position) = state.check(&identity(), Path::new("set"))
            {
                prop_assert!(position <= 1000);
            }
        }
    }
}
