//! Paths of a recorded command, which may be run again from another folder than it was run in.
//!
//! ```text
//!  summary.json: command, working_folder ─▶ each option that names what is read
//!      ├─ there in that folder ─▶ its path from there
//!      ├─ there in this folder ─▶ as it is
//!      └─ in neither ───────────▶ as it is; where the run fails, what it was looked for in is said
//! ```

use super::command_line::{replace, value};
use super::is_same_file;
use std::path::{Component, Path, PathBuf};

/// Options that name what is read, and whether a command can mean nothing else by them than a path.
const READ: [(&str, bool); 9] = [
    ("input", true),
    ("data", true),
    ("data-source", true),
    ("config", true),
    ("cells", true),
    ("cells-masks", true),
    ("python", false),
    ("onnxruntime", false),
    ("model", false),
];

/// Makes paths of `words` that are relative to the folder `there` and name something in it paths from there; `here` is the working
/// folder. Returns what is to be said of those that are in neither, should the run fail.
pub fn resolve(words: &mut Vec<String>, there: Option<&Path>, here: &Path) -> Option<String> {
    let elsewhere = there.filter(|there| !is_same_file(there, here));
    let mut missing = Vec::new();
    for (option, is_path) in READ {
        let Some(given) = value(words, option).map(str::to_owned) else { continue };
        if given == "synthetic" || given.contains("://") || Path::new(&given).is_absolute() {
            continue;
        }
        let is_there = |folder: &Path| {
            let path = folder.join(&given);
            if is_path { exists(&path) } else { path.is_file() }
        };
        let old = elsewhere.filter(|there| is_there(there)).map(|there| there.join(&given));
        if let Some(old) = old.as_deref().and_then(Path::to_str) {
            replace(words, option, old);
        } else if is_path && !is_there(here) {
            missing.push(format!("--{option} {given}"));
        }
    }
    // Branches are of the repository around the folder.
    if words.first().is_some_and(|command| command == "tasks") && value(words, "repo").is_none_or(is_relative)
    {
        let repository = value(words, "repo").unwrap_or(".").to_owned();
        let old = elsewhere.map(|there| there.join(&repository)).filter(|path| path.is_dir());
        if let Some(old) = old.as_deref().and_then(Path::to_str) {
            replace(words, "repo", old);
        }
    }
    if missing.is_empty() {
        return None;
    }
    let place = there.map_or_else(
        || "this folder; its summary.json does not say which folder the run was in".to_owned(),
        |there| format!("{}, the folder that the run was in, nor in this one", there.display()),
    );
    let not = if there.is_some() { "is neither in" } else { "is not in" };
    Some(format!(
        "(hint: {} {not} {place}; run this in the folder that the path is from)",
        missing.join(" and ")
    ))
}

fn is_relative(path: &str) -> bool {
    Path::new(path).is_relative()
}

/// Whether something is there: of a pattern of names, the folder that it is in.
fn exists(path: &Path) -> bool {
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let plain: PathBuf = path.components().take_while(is_plain).collect();
    path.exists() || plain.components().count() < path.components().count() && plain.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn relative_inputs_are_those_of_the_folder_of_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let [there, here] = ["there", "here"].map(|name| dir.path().join(name));
        fs::create_dir_all(there.join("set")).unwrap();
        fs::create_dir_all(here.join("cells")).unwrap();
        fs::create_dir_all(there.join("dataset")).unwrap();
        let resolved = |line: &str, there: Option<&Path>| {
            let mut all = words(line);
            let hint = resolve(&mut all, there, &here);
            (all, hint)
        };
        let old = there.display();
        // A word that is no path stays, whatever lies there under its name.
        let (all, hint) =
            resolved("bench dataset --input set --cells cells --python python3 --out=o", Some(&there));
        assert_eq!(
            all,
            words(&format!("bench dataset --cells cells --python python3 --out=o --input={old}/set"))
        );
        assert_eq!(hint, None);
        let (all, hint) = resolved("bench dataset --input=set/*.tif", Some(&there));
        assert_eq!((all, hint), (words(&format!("bench dataset --input={old}/set/*.tif")), None));
        // In neither, or nobody knows where.
        let (all, hint) = resolved("infer --data-source no --model resnet50", Some(&there));
        assert_eq!(all, words("infer --data-source no --model resnet50"));
        let hint = hint.unwrap();
        assert!(
            hint.starts_with(&format!("(hint: --data-source no is neither in {old}, the folder")),
            "{hint}"
        );
        let hint = resolved("bench dataset --input set", None).1.unwrap();
        assert!(hint.contains("--input set is not in this folder; its summary.json does not say"), "{hint}");
        for line in
            ["infer --data-source synthetic", "bench all --input s3://bucket/set", "bench all --input /"]
        {
            assert_eq!(resolved(line, Some(&there)), (words(line), None));
        }
        // The repository of tasks is the folder itself.
        let (all, _) = resolved("tasks train --config set", Some(&there));
        assert_eq!(all, words(&format!("tasks train --config={old}/set --repo={old}/.")));
        // From the folder itself, nothing changes.
        let line = "tasks train --config set";
        let mut same = words(line);
        assert_eq!((resolve(&mut same, Some(&there), &there), same), (None, words(line)));
    }
}
