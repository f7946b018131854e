//! Checkpoints: weights, optimiser and settings in one safetensors file, with PyTorch's names and layouts.
//!
//! | entry | what it is |
//! |---|---|
//! | `encoder.0.0.conv.weight` … | parameters and running statistics |
//! | `optimizer.mean.NAME`, `optimizer.square.NAME` | Adam's moments |
//! | metadata `wellread` | JSON: settings, network, epoch, step, best score, normalisation of the set |

use crate::config::Config;
use crate::net::{Adam, Network, Unet, UnetSpec};
use anyhow::{Context as _, Result, bail, ensure};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use wellread_model::NamedArray;

/// Name of the metadata entry.
const ENTRY: &str = "wellread";

/// The state beside the arrays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// All settings.
    pub config: Config,
    /// The network.
    pub network: UnetSpec,
    /// Seed of the run.
    pub seed: u64,
    /// Epochs that are complete.
    pub epoch: u64,
    /// Steps that are done.
    pub step: u64,
    /// The best score so far; larger is better.
    pub best: Option<f64>,
    /// Mean and deviation of image and target, where the set's are used.
    pub set: Option<[[f64; 2]; 2]>,
}

/// Writes a checkpoint, whole or not at all.
///
/// # Errors
/// A file that cannot be written.
pub fn write(path: &Path, net: &Unet, adam: &Adam, state: &State) -> Result<()> {
    let mut arrays: Vec<NamedArray> = net.params().map(|p| p.export(p.name.clone(), &p.values)).collect();
    for (param, [mean, square]) in net.params().filter(|p| p.learnt).zip(&adam.moments) {
        arrays.push(param.export(format!("optimizer.mean.{}", param.name), mean));
        arrays.push(param.export(format!("optimizer.square.{}", param.name), square));
    }
    let bytes: Vec<Vec<u8>> =
        arrays.iter().map(|a| a.values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let views = arrays
        .iter()
        .zip(&bytes)
        .map(|(a, bytes)| Ok((a.name.clone(), TensorView::new(Dtype::F32, a.shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .context("the checkpoint")?;
    let metadata = HashMap::from([(ENTRY.to_owned(), serde_json::to_string(state)?)]);
    let file = serialize(views, Some(metadata)).context("the checkpoint")?;
    wellread_store::staged::write(path, file).context("the checkpoint")
}

/// A checkpoint that was read.
pub struct Checkpoint {
    bytes: Vec<u8>,
    /// The state beside the arrays.
    pub state: State,
}

impl Checkpoint {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// A file that cannot be read or is no checkpoint of wellread.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read the checkpoint {}", path.display()))?;
        let at = || format!("{} is no checkpoint of native experiments", path.display());
        let (_, metadata) = SafeTensors::read_metadata(&bytes).with_context(at)?;
        let entry = metadata.metadata().as_ref().and_then(|m| m.get(ENTRY)).with_context(at)?;
        let state = serde_json::from_str(entry).with_context(at)?;
        Ok(Self { bytes, state })
    }

    /// Fills a network and, if it is to be trained on, its optimiser.
    ///
    /// # Errors
    /// Arrays that are missing, of another type or of another shape; nothing is changed then.
    pub fn load(&self, net: &mut Unet, adam: Option<&mut Adam>) -> Result<()> {
        let file = SafeTensors::deserialize(&self.bytes).context("the checkpoint is damaged")?;
        let array = |name: String| -> Result<NamedArray> {
            let Ok(view) = file.tensor(&name) else { bail!("the checkpoint has no array {name}") };
            ensure!(view.dtype() == Dtype::F32, "the checkpoint's array {name} is not of 32-bit floats");
            let values: Vec<f32> =
                view.data().as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            ensure!(
                values.iter().all(|v| v.is_finite()),
                "the checkpoint's array {name} holds no finite numbers"
            );
            Ok(NamedArray { name, shape: view.shape().to_vec(), values })
        };
        let values = net.params().map(|p| p.import(&array(p.name.clone())?)).collect::<Result<Vec<_>>>()?;
        if let Some(adam) = adam {
            let of =
                |part: &str, p: &crate::net::Param| p.import(&array(format!("optimizer.{part}.{}", p.name))?);
            let learnt = net.params().filter(|p| p.learnt);
            adam.moments = learnt.map(|p| Ok([of("mean", p)?, of("square", p)?])).collect::<Result<_>>()?;
            adam.steps = self.state.step;
        }
        net.params_mut().zip(values).for_each(|(param, values)| param.values = values);
        Ok(())
    }
}
