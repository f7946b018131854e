//! The adapters in Python, as far as no Python is needed: the rows that are theirs, and the errors before anything
//! runs. Their measurements are tested in `tests/python/test_tasks_*.py`.

use crate::support::{Sandbox, alone, git, refused, run};
use wellread_tasks::config::Config;
use wellread_tasks::task::Mode;
use wellread_tasks::text;

const HEADER: &str = "branch,experiment,trainer,checkpoint_path,data_path,overrides\n";

/// A branch with a Lightning package, and one that has CytoDL's files.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "net", "main"]);
    sandbox.commit("net/model.py", "", "a package");
    sandbox.commit("src/inner/data.py", "", "a package in src");
    sandbox.commit(
        "configs/experiment/cells.yaml",
        "model:\n  class_path: net.model.Net\n",
        "its experiment",
    );
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "cyto", "main"]);
    for name in ["train", "trainer/cpu", "trainer/ddp", "trainer/ddp_sim", "experiment/im2im/segmentation"] {
        sandbox.commit(&format!("configs/{name}.yaml"), "a: 1\n", name);
    }
    sandbox.commit("cyto_dl/__init__.py", "", "CytoDL");
    sandbox.commit("configs/experiment/im2im/own.toml", "kind = \"im2im/segmentation\"\n", "in Rust");
    git(&sandbox.repo(), &["checkout", "--quiet", "main"]);
    sandbox
}

#[test]
fn rows_find_their_adapter_by_the_files_of_the_branch() {
    let _alone = alone();
    let sandbox = sandbox();
    for (row, adapter) in [
        ("net,net.model:Net,cpu", "lightning"),
        ("net,\"net.model:Net,inner.data:Data\",ddp", "lightning"),
        ("net,cells,cpu", "lightning"),
        ("net,unet,cpu", "command"),
        ("cyto,im2im/segmentation,cpu", "cyto-dl"),
        ("cyto,im2im/segmentation,ddp", "cyto-dl"),
        ("cyto,unet,cpu", "command"),
        ("main,unet,cpu", "command"),
    ] {
        let config = sandbox.config(&format!("branch,experiment,trainer\n{row}\n"));
        let outcome = run(&Config { dry_run: true, python: Some("python3".into()), ..config });
        let planned = outcome.unwrap_or_else(|error| panic!("{row}: {error:#}")).planned;
        let plan = text::plan(&planned, 1);
        assert!(plan.contains(adapter), "{row}\n{plan}");
    }
    // Each adapter looks for the file of the row, not for any of its kind.
    for (row, said) in [
        ("cyto,im2im/own,ddp", "native experiments run on the processors (trainer cpu), not on ddp"),
        (
            "cyto,im2im/segmentatoin,cpu",
            "there is no program \"im2im/segmentatoin\"; \
             configs/experiment has im2im/own.toml, im2im/segmentation.yaml, unet.sh",
        ),
    ] {
        let refusal = refused(&sandbox.config(&format!("branch,experiment,trainer\n{row}\n")));
        assert!(refusal.contains(said), "{row}\n{refusal}");
    }
}

#[test]
fn what_python_would_not_find_is_said_before_it_starts() {
    let _alone = alone();
    let sandbox = sandbox();
    let train = [
        (
            "lightning",
            "net,\"net.modle:Net\",cpu,,,",
            "has no module \"net.modle\": there is no net/modle.py",
        ),
        ("lightning", "net,\"net.model:Net,inner.date:Data\",cpu,,,", "no module \"inner.date\""),
        (
            "lightning",
            "net,\"a:B,c:D,e:F\",cpu,,,",
            "is not package.module:ModelClass,package.module:DataClass",
        ),
        ("lightning", "net,cels,cpu,,,", "has no experiment \"cels\": it has cells"),
        ("lightning", "net,cells,cpu,,,lr=1", "override \"lr=1\" must be model.NAME=VALUE"),
        ("cyto-dl", "cyto,segmentation,cpu,,,", "no experiment \"segmentation\": it has im2im/segmentation"),
        ("cyto-dl", "cyto,im2im/segmentation,gpu,,,", "gpu"),
        ("cyto-dl", "main,unet,cpu,,,", "branch \"main\" has no cyto_dl: it is no CytoDL"),
    ];
    let inference = [
        ("lightning", "net,cells,cpu,,,", "needs a checkpoint_path"),
        ("cyto-dl", "cyto,im2im/segmentation,cpu,,,", "has no configs/eval.yaml"),
    ];
    let cases = train.map(|case| (Mode::Train, case)).into_iter();
    for (mode, (adapter, row, expected)) in cases.chain(inference.map(|case| (Mode::Inference, case))) {
        let config = sandbox.config(&format!("{HEADER}{row}\n"));
        let said = refused(&Config { mode, adapter: adapter.into(), ..config });
        assert!(said.contains(expected) && said.contains("line 2"), "{row}\n{said}");
    }
}

/// The machine that plans need not have the GPUs of the nodes, nor the branch what stands in for them.
#[test]
fn a_trainer_of_nodes_with_gpus_is_planned_where_there_are_none() {
    let _alone = alone();
    let sandbox = sandbox();
    git(&sandbox.repo(), &["checkout", "--quiet", "-b", "on-gpus", "cyto"]);
    std::fs::remove_file(sandbox.repo().join("configs/trainer/ddp_sim.yaml")).unwrap();
    sandbox.commit("note", "", "no simulation of GPUs");
    git(&sandbox.repo(), &["checkout", "--quiet", "main"]);
    let config = sandbox.config("branch,experiment,trainer\non-gpus,im2im/segmentation,ddp\n");
    let planning =
        Config { dry_run: true, on_other_machines: true, python: Some("python3".into()), ..config };
    let planned = run(&planning).unwrap().planned;
    assert_eq!(planned[0].ready.as_ref().err(), None);
}
