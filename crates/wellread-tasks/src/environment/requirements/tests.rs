use super::super::tools::Uv;
use super::*;

fn read_names(files: &[(&str, &str)], commit: &str) -> Result<Requirements> {
    let mut top: Vec<String> = Vec::new();
    for (path, _) in files {
        let first = path.split('/').next().unwrap_or_default().to_owned();
        if !top.contains(&first) {
            top.push(first);
        }
    }
    let below = files.iter().filter_map(|(path, _)| path.strip_prefix("requirements/"));
    let below: Vec<String> = below.map(str::to_owned).collect();
    let read = |path: &str| -> Result<Option<String>> {
        Ok(files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()))
    };
    Requirements::from_names(&top, &below, commit, &read)
}

fn wanted_of(files: &[(&str, &str)], commit: &str) -> Requirements {
    read_names(files, commit).unwrap()
}

fn wanted(files: &[(&str, &str)]) -> Requirements {
    wanted_of(files, "abc")
}

fn tools(uv: bool) -> Tools {
    let uv = uv.then(|| Uv { program: "uv".into(), reads_pylock: true });
    Tools { uv, base: "python3".into(), version: "3.12".into() }
}

/// The commands of an environment E for the worktree W, as typed.
fn shown(wanted: &Requirements, tools: &Tools) -> Vec<String> {
    let commands = wanted.commands(tools, Path::new("E"), Path::new("W"));
    let words = |c: &Command| {
        let all = std::iter::once(c.get_program()).chain(c.get_args());
        all.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    };
    commands.iter().map(words).collect()
}

const PROJECT: (&str, &str) = ("pyproject.toml", "[project]\nname = 'x'\nrequires-python = '>=3.13'\n");

#[test]
fn equal_files_are_one_environment_and_others_are_not() {
    let key = |top: &[(&str, &str)]| wanted(top).key(&tools(true));
    let one = key(&[("requirements.txt", "torch==2\n"), PROJECT, ("uv.lock", "x")]);
    assert_eq!(one, key(&[("requirements.txt", "torch==2\n"), PROJECT, ("uv.lock", "x")]));
    assert_ne!(one, key(&[("requirements.txt", "torch==2\n"), PROJECT, ("uv.lock", "y")]));
    assert_ne!(key(&[("requirements.txt", "a\0b")]), key(&[("requirements.txt", "a")]));
    assert_eq!(key(&[]), None);
    assert_eq!(key(&[(".python-version", "3.12")]), None);
    // Tools' settings, and a lock of nothing.
    assert_eq!(key(&[("pyproject.toml", "# [project] is not here\n[tool.ruff]\n"), ("uv.lock", "x")]), None);
    assert!(read_names(&[("pyproject.toml", "[project")], "").is_err());
    // Another Python, another environment.
    let requirements = wanted(&[("requirements.txt", "six")]);
    let newer = Tools { version: "3.13".into(), ..tools(true) };
    assert_ne!(requirements.key(&tools(true)), requirements.key(&newer));
}

#[test]
fn included_requirements_count() {
    let of = |version: &str, commit: &str| {
        let files = [
            (
                "requirements.txt",
                "-r requirements/base.txt  # all\n--constraint=limits.txt\n-r https://x/y.txt\n",
            ),
            ("requirements/base.txt", "-c../limits.txt\n--requirement more/deep.txt\n-r ../../outside.txt\n"),
            ("requirements/more/deep.txt", version),
            ("limits.txt", "-r requirements.txt\nnumpy<3\n"),
            ("outside.txt", "no"),
        ];
        wanted_of(&files, commit)
    };
    let old = of("six==1.16.0", "abc");
    assert_eq!(
        old.names(),
        "requirements.txt, limits.txt, requirements/base.txt, requirements/more/deep.txt"
    );
    assert_eq!(old.key(&tools(true)), of("six==1.16.0", "def").key(&tools(true)));
    assert_ne!(old.key(&tools(true)), of("six==1.17.0", "abc").key(&tools(true)));
    assert_eq!(old.requirements(), ["requirements.txt"]);
}

#[test]
fn an_environment_with_the_branch_in_it_is_the_commits_alone() {
    for line in ["-e .", "--editable=./net", ".", "../x", "net @ file:///x"] {
        let of = |commit| wanted_of(&[("requirements.txt", line)], commit).key(&tools(true));
        assert_ne!(of("abc"), of("def"), "{line}");
    }
    let of = |commit, uv| wanted_of(&[PROJECT], commit).key(&tools(uv));
    assert_eq!(of("abc", true), of("def", true));
    assert_ne!(of("abc", false), of("def", false));
    let of = |commit| wanted_of(&[("requirements.txt", "-e git+https://x/y.git")], commit).key(&tools(true));
    assert_eq!(of("abc"), of("def"));
}

#[test]
fn the_commands_are_what_the_files_ask_for() {
    let dev = ("requirements-dev.txt", "pytest");
    let plain = wanted(&[dev, ("requirements.txt", "numpy")]);
    assert_eq!(
        shown(&plain, &tools(true)),
        [
            "uv venv --quiet --no-project --python python3 E",
            "uv pip install --python E/bin/python -r requirements.txt"
        ]
    );
    assert_eq!(wanted(&[dev, ("requirements_gpu.txt", "x")]).requirements().len(), 2);
    let locked = wanted(&[PROJECT, ("uv.lock", "x")]);
    assert_eq!(
        shown(&locked, &tools(true)),
        ["uv venv --quiet --no-project --python >=3.13 E", "uv sync --locked --no-install-project --no-dev"]
    );
    let pinned = wanted(&[PROJECT, (".python-version", "# ours\n3.12\n")]);
    assert_eq!(shown(&pinned, &tools(true))[0], "uv venv --quiet --no-project --python 3.12 E");
    assert!(shown(&pinned, &tools(false))[1].ends_with("--disable-pip-version-check W"));
}

#[test]
fn a_pylock_is_all_that_is_installed() {
    let lock = ("pylock.toml", "lock-version = '1.0'\n");
    let locked = wanted(&[lock, PROJECT, ("requirements.txt", "six"), ("poetry.lock", "x")]);
    assert_eq!(shown(&locked, &tools(true))[1], "uv pip install --python E/bin/python -r pylock.toml");
    assert_eq!(locked.unread(&tools(true)), None);
    assert_ne!(locked.key(&tools(true)), wanted(&[("pylock.toml", "y"), PROJECT]).key(&tools(true)));
    // Older ones, and pip, do not know it.
    let older = Tools { uv: Some(Uv { program: "uv".into(), reads_pylock: false }), ..tools(true) };
    let alone = wanted(&[lock]);
    assert_eq!(alone.key(&older), None);
    for tools in [&older, &tools(false)] {
        let said = alone.unread(tools).unwrap();
        assert!(said.contains("pylock.toml") && said.ends_with("install uv 0.6.15 or newer"), "{said}");
    }
    let said = wanted(&[PROJECT, ("uv.lock", "x")]).unread(&tools(false)).unwrap();
    assert!(said.starts_with("uv.lock (") && said.contains("which is not read: install uv"), "{said}");
}

#[test]
fn what_nobody_reads_is_said_and_told_apart() {
    for name in ["poetry.lock", "pdm.lock", "Pipfile.lock", "environment.yml"] {
        let alone = wanted(&[(name, "a")]);
        assert_eq!(alone.key(&tools(true)), None, "{name}");
        let said = alone.unread(&tools(true)).unwrap();
        assert!(said.starts_with(&format!("{name} (")) && said.contains("which is not read"), "{said}");
        assert!(said.contains("--python") && said.contains("export it to requirements.txt"), "{said}");
        assert_ne!(Some(said), wanted(&[(name, "b")]).unread(&tools(true)));
        let key = |text| wanted(&[(name, text), ("requirements.txt", "six")]).key(&tools(true));
        assert_eq!(key("a"), key("a"));
        assert_ne!(key("a"), key("b"), "{name}");
    }
    let both = wanted(&[("Pipfile", "a"), ("Pipfile.lock", "b")]).unread(&tools(true)).unwrap();
    assert!(both.contains("which are not read"), "{both}");
    let poetry = wanted(&[("pyproject.toml", "[tool.poetry]\nname = 'x'\n")]);
    assert_eq!(poetry.key(&tools(true)), None);
    assert!(poetry.unread(&tools(true)).unwrap().contains("[tool.poetry] alone"));
    let settings = wanted(&[("setup.cfg", "[options]\ninstall_requires =\n  six\n")]);
    assert!(settings.unread(&tools(true)).unwrap().contains("setup.cfg without setup.py"));
    assert_eq!(wanted(&[PROJECT]).unread(&tools(true)), None);
    assert_eq!(wanted(&[("setup.cfg", "[flake8]\n")]).unread(&tools(true)), None);
}

#[test]
fn projects_that_must_be_built_are_for_their_commit_alone() {
    let poetry = "[tool.poetry]\nname = 'x'\n[build-system]\nbuild-backend = 'poetry.core.masonry.api'\n";
    let dynamic = "[project]\nname = 'x'\ndynamic = ['version', 'dependencies']\n";
    let options = ("setup.cfg", "[metadata]\nname = x\n\n[options]\ninstall_requires = six\n");
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("pyproject.toml", poetry)], "pyproject.toml"),
        (&[("pyproject.toml", dynamic)], "pyproject.toml"),
        (&[("setup.py", "setup()"), options], "setup.py"),
        (&[("pyproject.toml", "[tool.ruff]\n"), options], "setup.cfg"),
    ];
    for (files, installed) in cases {
        let of = |commit| wanted_of(files, commit).key(&tools(true));
        assert!(of("abc").is_some() && of("abc") != of("def"), "{installed}");
        let project = wanted(files);
        let command = format!("uv pip install --python E/bin/python -r {installed}");
        assert_eq!(shown(&project, &tools(true))[1], command);
        assert!(shown(&project, &tools(false))[1].ends_with(" W"), "{installed}");
        assert_eq!(project.unread(&tools(true)), None, "{installed}");
    }
    // Requirements say it without a build.
    let plain = wanted(&[("setup.py", "setup()"), ("requirements.txt", "six")]);
    assert_eq!(shown(&plain, &tools(true))[1], "uv pip install --python E/bin/python -r requirements.txt");
    assert!(shown(&plain, &tools(false))[1].ends_with("-r requirements.txt"));
}

#[test]
fn requirements_in_a_folder_count_where_the_top_has_none() {
    let folder = [
        ("requirements/base.txt", "numpy"),
        ("requirements/all-requirements.txt", "vtk"),
        ("requirements/requirements.txt", "-r base.txt\nmonai==1.4.0\n"),
        PROJECT,
    ];
    let pinned = wanted(&folder);
    assert_eq!(pinned.names(), "pyproject.toml, requirements/requirements.txt, requirements/base.txt");
    assert_eq!(
        shown(&pinned, &tools(true))[1],
        "uv pip install --python E/bin/python -r requirements/requirements.txt -r pyproject.toml"
    );
    assert_eq!(wanted(&folder[..1]).requirements(), ["requirements/base.txt"]);
    // Pip takes no project beside hashes.
    let hashed = wanted(&[PROJECT, ("requirements.txt", "six==1.17.0 --hash=sha256:00\n")]);
    assert!(shown(&pinned, &tools(false))[1].ends_with("-r requirements/requirements.txt W"));
    assert!(shown(&hashed, &tools(false))[1].ends_with("-r requirements.txt"));
    let top = wanted(&[folder[0], ("requirements-dev.txt", "pytest")]);
    assert_eq!(top.requirements(), ["requirements-dev.txt"]);
    // Which of others is meant cannot be told.
    let said = wanted(&[folder[1]]).unread(&tools(true)).unwrap();
    assert!(said.starts_with("requirements/ without requirements.txt, main.txt"), "{said}");
}
