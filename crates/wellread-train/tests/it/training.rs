//! Training and inference from beginning to end.

use crate::support::{World, metrics};
use serde_json::Value;
use std::fs;
use wellread_store::{OpenOptions, open, read_image};
use wellread_train::task::{Mode, Task};

const SEGMENTATION: &str = "im2im/segmentation";

/// How many samples of a repeated phase there are, and how many of them are warm-up.
fn steps(lines: &[Value], name: &str) -> (usize, u64) {
    let of = lines.iter().filter(|line| line["samples"] == name);
    of.fold((0, 0), |(n, warm), line| {
        (n + line["seconds"].as_array().unwrap().len(), warm + line["warm_up"].as_u64().unwrap())
    })
}

#[test]
fn cells_are_found_and_predicted_again() {
    let world = World::new(3, [1, 1, 1, 64, 80]);
    let overrides = [
        "training.epochs=12",
        "data.patches_per_image=8",
        "optimizer.lr=0.01",
        "optimizer.schedule=cosine",
        "data.validation=[\"*2\"]",
        "inference.tile=48",
        "model.width=6",
    ];
    let mut task = world.task(SEGMENTATION, "out", &overrides);
    let lines = world.run(&task).unwrap();
    let dice = metrics(&lines)["best_val_dice"].as_f64().unwrap();
    assert!(dice > 0.8, "{dice}");
    for phase in [
        "configuration",
        "data_setup",
        "model_initialization",
        "first_batch_loading",
        "first_batch_to_device",
    ]
    .into_iter()
    .chain(["first_batch_forward", "first_epoch", "full_training", "total_training"])
    {
        assert_eq!(lines.iter().filter(|line| line["phase"] == phase).count(), 1, "{phase}");
    }
    // The first epoch fills the cache.
    for name in ["batch_loading", "batch_to_device", "batch_forward", "batch_step"] {
        assert_eq!(steps(&lines, name), (12 * 8, 8), "{name}");
    }
    assert_eq!(steps(&lines, "epoch"), (12, 1));
    let table = fs::read_to_string(world.path("out/metrics.csv")).unwrap();
    assert!(table.starts_with("epoch,step,train_loss,val_loss,val_dice,val_iou\n1,8,"), "{table}");
    assert_eq!(table.lines().count(), 13);
    assert!(fs::read(world.path("out/overlay.png")).unwrap().starts_with(b"\x89PNG"));

    // The best checkpoint on the same images: masks, scores as high as in validation.
    task.mode = Mode::Inference;
    task.checkpoint_path = Some(world.path("out/checkpoints/best.safetensors"));
    task.output_dir = world.path("predicted");
    let lines = world.run(&task).unwrap();
    let found = metrics(&lines)["dice"].as_f64().unwrap();
    assert!(found > 0.75, "{found}");
    let predictions = open(world.path("predicted/predictions"), &OpenOptions::default()).unwrap();
    assert_eq!(predictions.len(), 3);
    let (info, pixels) = read_image(&*predictions, 0).unwrap();
    assert_eq!(info.shape.0, [1, 1, 1, 64, 80]);
    assert!(pixels.iter().all(|&v| v == 0 || v == 255) && pixels.contains(&255));
    // Images without masks are predicted all the same.
    task.overrides.retain(|line| !line.starts_with("data.masks"));
    task.data_path = Some(world.path("images"));
    let lines = world.run(&task).unwrap();
    assert!(lines.iter().all(|line| line.get("final_metrics").is_none()));
    assert!(lines.iter().any(|line| line["phase"] == "total_inference"));
}

/// Loss column of the table of an output.
fn losses(world: &World, out: &str) -> Vec<String> {
    let table = fs::read_to_string(world.path(out).join("metrics.csv")).unwrap();
    table.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().to_owned()).collect()
}

#[test]
fn a_seed_gives_the_same_losses_and_a_checkpoint_goes_on_with_them() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    let overrides = ["augment.elastic=2.0", "augment.rotate_degrees=20", "augment.brightness=0.2"];
    let with = |out: &str, more: &[&str]| -> Task {
        world.task(SEGMENTATION, out, &[&overrides[..], more].concat())
    };
    world.run(&with("a", &["training.epochs=4"])).unwrap();
    world.run(&with("b", &["training.epochs=4", "data.workers=0", "training.threads=1"])).unwrap();
    assert_eq!(losses(&world, "a"), losses(&world, "b"));
    let mut other = with("c", &["training.epochs=4"]);
    other.seed = 6;
    world.run(&other).unwrap();
    assert_ne!(losses(&world, "a"), losses(&world, "c"));
    // Two epochs, then two more from the checkpoint, in the same folder.
    world.run(&with("d", &["training.epochs=2"])).unwrap();
    let mut rest = with("d", &["training.epochs=4"]);
    rest.checkpoint_path = Some(world.path("d/checkpoints/last.safetensors"));
    // A process that goes on is cold too: of a single epoch its first step is warm-up.
    let mut one_more = with("e", &["training.epochs=3"]);
    one_more.checkpoint_path.clone_from(&rest.checkpoint_path);
    let lines = world.run(&one_more).unwrap();
    assert_eq!((steps(&lines, "batch_step"), steps(&lines, "epoch")), ((2, 1), (1, 0)));
    world.run(&rest).unwrap();
    assert_eq!(losses(&world, "a"), losses(&world, "d"));
    let last = |out: &str| fs::read(world.path(out).join("checkpoints/last.safetensors")).unwrap();
    // Weights and moments lie behind the header, which names paths.
    let arrays =
        |bytes: Vec<u8>| bytes[8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize..].to_vec();
    assert_eq!(arrays(last("a")), arrays(last("d")));
    // Nothing is left to do.
    let error = world.run(&rest).unwrap_err();
    assert!(error.contains("4 epochs already"), "{error}");
}

/// A run that goes on in another folder, and finds nothing better than the run before it, has a best checkpoint too.
#[test]
fn whoever_goes_on_in_another_folder_has_a_best_checkpoint_there() {
    let world = World::new(2, [1, 1, 1, 40, 40]);
    // Nothing but weights changes from step to step, and then not even these.
    let task = |out: &str, epochs: &str, rate: &str| {
        let more = ["model.norm=none", "data.validation=[\"*1\"]", epochs, rate];
        world.task(SEGMENTATION, out, &more)
    };
    let first = world.run(&task("first", "training.epochs=1", "optimizer.lr=0.001")).unwrap();
    let mut rest = task("rest", "training.epochs=2", "optimizer.lr=1e-20");
    rest.checkpoint_path = Some(world.path("first/checkpoints/last.safetensors"));
    let rest = world.run(&rest).unwrap();
    assert_eq!(metrics(&rest)["val_dice"], metrics(&first)["val_dice"]);
    assert_eq!(metrics(&rest)["best_val_dice"], metrics(&rest)["val_dice"]);
    assert!(world.path("rest/checkpoints/best.safetensors").is_file());
}

#[test]
fn volumes_are_segmented_in_three_dimensions() {
    let world = World::new(2, [1, 1, 5, 32, 36]);
    let overrides = ["model.dimensions=3", "training.epochs=6", "optimizer.lr=0.01", "data.validation=0.5"];
    let mut task = world.task(SEGMENTATION, "out", &overrides);
    let lines = world.run(&task).unwrap();
    let loss = losses(&world, "out");
    let of = |i: usize| loss[i].parse::<f64>().unwrap();
    assert!(of(5) < 0.8 * of(0), "{loss:?}");
    assert!(metrics(&lines)["val_dice"].as_f64().is_some());
    task.mode = Mode::Inference;
    task.checkpoint_path = Some(world.path("out/checkpoints/last.safetensors"));
    task.output_dir = world.path("predicted");
    world.run(&task).unwrap();
    let predictions = open(world.path("predicted/predictions"), &OpenOptions::default()).unwrap();
    assert_eq!(predictions.row_info(1).unwrap().shape.0, [1, 1, 5, 32, 36]);
}

#[test]
fn one_channel_is_predicted_from_another() {
    let world = World::new(3, [1, 2, 1, 48, 48]);
    let overrides = [
        "training.epochs=12",
        "training.batch_size=8",
        "data.patches_per_image=24",
        "data.validation=[\"*1\"]",
        "optimizer.lr=0.01",
        "optimizer.schedule=cosine",
        "data.normalize=set",
    ];
    // As upstream's documents call it.
    let mut task = world.task("im2im/label_free", "out", &overrides);
    let lines = world.run(&task).unwrap();
    assert!(metrics(&lines)["best_val_pearson"].as_f64().unwrap() > 0.5, "{}", metrics(&lines));
    let table = fs::read_to_string(world.path("out/metrics.csv")).unwrap();
    assert!(table.starts_with("epoch,step,train_loss,val_loss,val_dice,val_pearson,val_mse\n"), "{table}");
    task.mode = Mode::Inference;
    task.checkpoint_path = Some(world.path("out/checkpoints/best.safetensors"));
    task.output_dir = world.path("predicted");
    let lines = world.run(&task).unwrap();
    assert!(metrics(&lines)["pearson"].as_f64().unwrap() > 0.5);
}
