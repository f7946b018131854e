//! Refused inputs, and the error of each.

use crate::support::World;
use std::fs;
use wellread_image::{ImageMetadata, PixelType, Shape};
use wellread_store::{ImageView, WriteOptions, create};
use wellread_train::Config;
use wellread_train::task::{Mode, Task};

const SEGMENTATION: &str = "im2im/segmentation";

fn refused(world: &World, task: &Task, words: &[&str]) {
    let error = world.run(task).unwrap_err();
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
}

#[test]
fn settings_that_make_no_sense() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    for (setting, words) in [
        ("model.widht=8", &["model.widht", "model.width"][..]),
        ("model.width=\"many\"", &["width"]),
        ("model=3", &["model is a table"]),
        ("model.width=0", &["model.width must be at least 1"]),
        ("model.width=100000000", &["GiB", "model.width"]),
        ("model.depth=40", &["model.depth is 40"]),
        ("model.norm=layer", &["layer", "batch"]),
        ("data.patch=[64, 64]", &["40 x 40", "data.patch = [64, 64]"]),
        ("data.image_channel=3", &["has 1 channel, but data.image_channel is 3"]),
        ("data.image_names=x*", &["data.image_names", "cells-000000"]),
        ("data.validation=[\"nobody\"]", &["nobody"]),
        ("data.validation=[\"*\"]", &["nothing is left to train on"]),
        ("data.cache=warm", &["data.cache"]),
        ("data.images=nowhere", &["data.images", "nowhere"]),
        ("data.masks=", &["data.targets names no masks"]),
        ("optimizer.lr=-1", &["optimizer.lr is -1"]),
        ("training.threads=100000", &["training.threads"]),
        ("kind=im2im/dreams", &["im2im/dreams", "im2im/segmentation, im2im/labelfree"]),
        ("nonsense", &["no key=value"]),
    ] {
        refused(&world, &world.task(SEGMENTATION, "out", &[setting]), words);
    }
    let gpu = Task { trainer: "gpu".into(), ..world.task(SEGMENTATION, "out", &[]) };
    refused(&world, &gpu, &["gpu", "cpu"]);
    let none = Task { mode: Mode::Inference, ..world.task(SEGMENTATION, "out", &[]) };
    refused(&world, &none, &["checkpoint_path"]);
    assert!(!world.path("out/checkpoints/last.safetensors").exists());
}

/// `im2im/label_free`, as upstream's documents call it, has the defaults of `im2im/labelfree`, and its checkpoints.
#[test]
fn upstreams_name_is_the_same_experiment() {
    let world = World::new(2, [1, 2, 1, 40, 40]);
    let of = |name: &str| Config::of_task(&world.task(name, "out", &[])).unwrap().1;
    let (upstreams, ours) = (of("im2im/label_free"), of("im2im/labelfree"));
    assert_eq!(upstreams, ours);
    assert_eq!((upstreams.kind.as_str(), upstreams.data.target_channel), ("im2im/labelfree", 1));
}

/// Data that the branch does not hold are looked for in the folders that the task names, and the error names
/// every place.
#[test]
fn data_are_looked_for_beyond_the_branch() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    let branch = world.path("branch");
    fs::create_dir_all(&branch).unwrap();
    let elsewhere = world.path("elsewhere");
    let task = Task {
        worktree: branch.clone(),
        search: vec![elsewhere.clone(), world.path("")],
        ..world.task(SEGMENTATION, "out", &["data.images=images", "data.masks=masks"])
    };
    let config = Config::of_task(&task).unwrap().1;
    assert_eq!((config.data.images, config.data.targets), (world.path("images"), world.path("masks")));
    let gone = Task { overrides: [task.overrides.clone(), vec!["data.images=gone".into()]].concat(), ..task };
    let said = world.run(&gone).unwrap_err();
    assert!(said.contains("data.images: there is no gone; looked for at "), "{said}");
    for place in [branch.join("gone"), elsewhere.join("gone"), world.path("gone")] {
        assert!(said.contains(&*place.to_string_lossy()), "{said}");
    }
}

#[test]
fn experiments_that_the_branch_does_not_have() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    refused(
        &world,
        &world.task("im2im/sgmentation", "out", &[]),
        &["no folder configs/experiment", "im2im/segmentation"],
    );
    let folder = world.path("configs/experiment/im2im");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("mine.toml"), "kind = \"im2im/segmentation\"\n[training]\nepochs = 1\n").unwrap();
    fs::write(folder.join("odd.toml"), "[model]\nwidth = 4\n").unwrap();
    fs::write(folder.join("torn.toml"), "[model\n").unwrap();
    refused(&world, &world.task(SEGMENTATION, "out", &[]), &["\"main\"", "im2im/mine, im2im/odd"]);
    refused(&world, &world.task("im2im/odd", "out", &[]), &["odd.toml", "`kind`"]);
    refused(&world, &world.task("im2im/torn", "out", &[]), &["torn.toml", "no TOML"]);
    refused(&world, &world.task("im2im/../../x", "out", &[]), &["has no experiment"]);
    let mut task =
        world.task("im2im/mine", "out", &[&format!("data.masks={}", world.path("masks").display())]);
    task.overrides
        .retain(|line| !line.starts_with("training.epochs") && !line.starts_with("training.batch_size"));
    task.batch_size = Some(3);
    let lines = world.run(&task).unwrap();
    let info = lines.iter().find(|line| line.get("info").is_some()).unwrap();
    assert_eq!((&info["info"]["epochs"], &info["info"]["batch_size"]), (&1.into(), &3.into()));
}

/// A TIFF folder of one-plane images of 8 bits.
fn folder(world: &World, name: &str, images: &[(&str, usize, u8)]) {
    let mut writer = create(world.path(name), "tiff", &WriteOptions::default()).unwrap();
    for (name, side, value) in images {
        let metadata = ImageMetadata::named(*name);
        let pixels = vec![*value; side * side];
        let shape = Shape::plane(*side, *side);
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::U8, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn sets_that_do_not_fit_together() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    let with = |masks: &str| {
        world.task(SEGMENTATION, "out", &[&format!("data.masks={}", world.path(masks).display())])
    };
    folder(&world, "one", &[("cells-000000_mask", 40, 1)]);
    refused(&world, &with("one"), &["cells-000001", "no target"]);
    folder(&world, "small", &[("cells-000000_mask", 40, 1), ("cells-000001_mask", 39, 1)]);
    refused(&world, &with("small"), &["cells-000001", "[1, 39, 39]", "[1, 40, 40]"]);
    folder(&world, "twice", &[("cells-000000_a", 40, 1), ("cells-000000_b", 40, 1)]);
    refused(&world, &with("twice"), &["several targets", "data.target_names"]);
    fs::create_dir(world.path("empty")).unwrap();
    refused(&world, &with("empty"), &["data.targets", "empty"]);
    let volumes = World::new(2, [1, 1, 3, 40, 40]);
    refused(&volumes, &volumes.task(SEGMENTATION, "out", &[]), &["3 planes", "model.dimensions = 3"]);
    let single = World::new(1, [1, 1, 1, 40, 40]);
    refused(&single, &single.task(SEGMENTATION, "out", &["data.validation=0.2"]), &["one image only"]);
}

#[test]
fn a_loss_that_is_no_number_stops_the_run() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    let overrides = ["model.norm=none", "optimizer.lr=10", "training.epochs=200", "model.loss=mse"];
    refused(
        &world,
        &world.task(SEGMENTATION, "out", &overrides),
        &["the loss became", "optimizer.lr (now 10)"],
    );
}

#[test]
fn an_image_to_predict_that_is_not_finite_is_named() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    world.run(&world.task(SEGMENTATION, "trained", &["training.epochs=1", "data.normalize=set"])).unwrap();
    let mut writer = create(world.path("floats"), "tiff", &WriteOptions::default()).unwrap();
    for (name, value) in [("a-whole", 1.0f32), ("b-gone", f32::NAN)] {
        let (metadata, shape) = (ImageMetadata::named(name), Shape::plane(40, 40));
        let pixels: Vec<u8> = std::iter::repeat_n(value.to_le_bytes(), 40 * 40).flatten().collect();
        writer
            .write(&ImageView { metadata: &metadata, shape, dtype: PixelType::F32, pixels: &pixels })
            .unwrap();
    }
    writer.finish().unwrap();
    let images = format!("data.images={}", world.path("floats").display());
    let mut task = Task {
        mode: Mode::Inference,
        checkpoint_path: Some(world.path("trained/checkpoints/last.safetensors")),
        ..world.task(SEGMENTATION, "out", &[&images])
    };
    task.overrides.retain(|line| !line.starts_with("data.masks"));
    refused(&world, &task, &["the image ", "b-gone", "not finite"]);
}

#[test]
fn outputs_and_checkpoints_that_cannot_be_used() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    fs::write(world.path("file"), "x").unwrap();
    refused(&world, &world.task(SEGMENTATION, "file/out", &[]), &["cannot make the folder"]);
    let with = |name: &str| Task {
        checkpoint_path: Some(world.path(name)),
        mode: Mode::Inference,
        ..world.task(SEGMENTATION, "out", &[])
    };
    refused(&world, &with("missing.safetensors"), &["cannot read the checkpoint"]);
    refused(&world, &with("file"), &["no checkpoint of native experiments"]);
    world.run(&world.task(SEGMENTATION, "trained", &["training.epochs=1"])).unwrap();
    let good = fs::read(world.path("trained/checkpoints/last.safetensors")).unwrap();
    fs::write(world.path("torn"), &good[..good.len() - 5]).unwrap();
    refused(&world, &with("torn"), &["torn"]);
    let mut wider = world.task(SEGMENTATION, "out", &["model.width=8"]);
    wider.checkpoint_path = Some(world.path("trained/checkpoints/last.safetensors"));
    refused(&world, &wider, &["another network"]);
    let other = Task {
        checkpoint_path: Some(world.path("trained/checkpoints/last.safetensors")),
        mode: Mode::Inference,
        ..world.task("im2im/labelfree", "out", &["data.target_channel=0"])
    };
    refused(&world, &other, &["checkpoint of im2im/segmentation"]);
}
