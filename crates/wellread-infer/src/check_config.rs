//! Whether what a [`Config`] asks for exists: its frameworks among the backends, its models, devices and threads.

use crate::backend::{BACKENDS, Backend};
use crate::config::{Config, DEVICES, PROVIDERS, is_onnx};
use anyhow::{Result, bail, ensure};
use std::collections::HashSet;
use wellread_store::surface::{option, option_as};

impl Config {
    /// The frameworks of a list in which `both` is PyTorch and JAX, and `all` is every one.
    ///
    /// # Errors
    /// A name that is none of them; the message lists them.
    pub fn parse_framework(name: &str) -> Result<Vec<String>> {
        let all = || BACKENDS.iter().map(|backend| backend.name().to_owned());
        match name {
            "both" => Ok(Self::default().frameworks),
            "all" => Ok(all().collect()),
            name if all().any(|known| known == name) => Ok(vec![name.to_owned()]),
            _ => {
                let known: Vec<_> = all().collect();
                bail!(
                    "there is no framework {name:?}; there are {}, both (pytorch and jax) and all",
                    known.join(", ")
                )
            }
        }
    }

    /// The backends of the run, in the order asked for.
    ///
    /// # Errors
    /// A name that is none of them.
    pub fn backends(&self) -> Result<Vec<&'static dyn Backend>> {
        self.frameworks
            .iter()
            .map(|name| {
                Self::parse_framework(name)?;
                let found = BACKENDS.iter().copied().find(|backend| backend.name() == name);
                found.ok_or_else(|| anyhow::anyhow!("{name} is several frameworks; name each"))
            })
            .collect()
    }

    /// Checks the choices, but no file.
    ///
    /// # Errors
    /// The first that makes no sense; the message lists what there is.
    pub fn check(&self) -> Result<()> {
        self.backends()?;
        self.dtype()?;
        for model in &self.models {
            Self::parse_model(model)?;
            if !is_onnx(model) {
                crate::models::architecture(model, self.input_shape)?;
            }
        }
        for way in &self.torch {
            Self::parse_torch(way)?;
        }
        let named = |given: &Option<String>, known: &[&str], what: &str| -> Result<()> {
            if let Some(name) = given {
                ensure!(
                    known.contains(&name.as_str()),
                    "there is no {what} {name:?}; there are {}",
                    known.join(", ")
                );
            }
            Ok(())
        };
        named(&self.device, &DEVICES, "device")?;
        named(&self.provider, &PROVIDERS, "provider")?;
        ensure!(
            !self.frameworks.is_empty() && !self.models.is_empty(),
            "name at least one framework and one model"
        );
        ensure!(!self.batch_sizes.is_empty(), "name at least one batch size");
        ensure!(!self.batch_sizes.contains(&0), "a batch has at least one image; 0 was asked for");
        ensure!(self.iterations > 0, "at least one iteration is measured; 0 were asked for");
        let processors = wellread_worker::threads();
        ensure!(
            (1..=processors).contains(&self.threads),
            "--threads {}: a framework runs with 1 to {processors} threads here, as many as there are processors",
            self.threads
        );
        ensure!(
            !self.check || self.compared()?.len() > 1,
            "{} compares the outputs of frameworks, and one alone is asked for; name another, such as {}",
            option("check"),
            option_as("framework", "candle,pytorch")
        );
        Ok(())
    }

    /// The names of what is measured side by side: each framework in each of its ways.
    fn compared(&self) -> Result<HashSet<String>> {
        let backends = self.backends()?.into_iter();
        let named = backends.flat_map(|backend| {
            let ways = backend.variants(self).into_iter();
            ways.map(|way| crate::runner::name(backend.name(), &way)).collect::<Vec<_>>()
        });
        Ok(named.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_there_are_not_are_answered_by_those_there_are() {
        assert_eq!(Config::parse_framework("both").unwrap(), ["pytorch", "jax"]);
        assert_eq!(Config::parse_framework("all").unwrap().len(), BACKENDS.len());
        let text = Config::parse_framework("tensorflow").unwrap_err().to_string();
        assert!(text.contains("onnxruntime") && text.contains("candle"), "{text}");
        assert!(Config::parse_model("resnet18").unwrap_err().to_string().contains("vit_b_16"));
        assert_eq!(Config::parse_model("a/b.onnx").unwrap(), ["a/b.onnx"]);
        assert!(Config::parse_torch("compile+fast").unwrap_err().to_string().contains("channels-last"));
        Config::parse_torch("compile=max-autotune+channels-last").unwrap();
        assert_eq!(Config::parse_shape("3,64,48").unwrap(), [3, 64, 48]);
        assert!(Config::parse_shape("3,0,48").is_err() && Config::parse_shape("64,48").is_err());
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(wrong(|c| c.dtype = "int8".into()).contains("bfloat16"));
        assert!(wrong(|c| c.device = Some("npu".into())).contains("tpu"));
        assert!(wrong(|c| c.provider = Some("coreml".into())).contains("tensorrt"));
        assert!(wrong(|c| c.batch_sizes = vec![0]).contains("at least one image"));
        assert!(wrong(|c| c.iterations = 0).contains("iteration"));
        assert!(wrong(|c| c.input_shape = Some([1, 64, 64])).contains("--input-shape"));
    }

    #[test]
    fn outputs_of_one_alone_are_compared_with_nothing() {
        let of = |frameworks: &[&str], torch: &[&str]| {
            let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            let config =
                Config { frameworks: own(frameworks), torch: own(torch), check: true, ..Config::default() };
            config.check().map_err(|e| e.to_string())
        };
        let alone: [(&[&str], &[&str]); 3] = [
            (&["candle"], &["eager"]),
            (&["pytorch"], &["eager"]),
            (&["jax", "jax"], &["eager", "channels-last"]),
        ];
        for (frameworks, torch) in alone {
            let text = of(frameworks, torch).unwrap_err();
            assert!(text.contains("one alone is asked for; name another"), "{text}");
        }
        assert_eq!(of(&["candle", "jax"], &["eager"]), Ok(()));
        assert_eq!(of(&["pytorch"], &["eager", "channels-last"]), Ok(()));
        assert!(Config { frameworks: vec!["candle".to_owned()], ..Config::default() }.check().is_ok());
    }
}
