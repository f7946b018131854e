//! A bare repository that borrows the objects of the user's: fetched objects, worktrees and settings of a run are
//! written there.

use super::git::{git_output, git_output_with_stdin, try_git_output};
use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Settings of the user's repository that fetching and checking out need.
const SETTINGS: &str = "^(remote\\..*\\.(url|promisor|partialclonefilter|proxy)|extensions\\.partialclone\
    |credential\\.|http\\.|url\\.|core\\.(sshcommand|autocrlf|eol|symlinks|longpaths)|filter\\.|lfs\\.)";

/// Makes it in `folder`. `common` is the folder of git's files of the user's repository.
pub(super) fn make(user: &Path, common: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let format =
        try_git_output(user, &["rev-parse", "--show-object-format"])?.unwrap_or_else(|| "sha1".into());
    git_output(folder, &["init", "--quiet", "--bare", &format!("--object-format={}", format.trim())])?;
    let at = |name: &str| format!("cannot write {name} in {}", folder.display());
    let objects = git_output(user, &["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
    std::fs::write(folder.join("objects/info/alternates"), objects).with_context(|| at("alternates"))?;
    // Where the history ends of which only a part was fetched.
    let shallow = common.join("shallow");
    if shallow.is_file() {
        std::fs::copy(&shallow, folder.join("shallow")).with_context(|| at("shallow"))?;
    }
    let settings =
        try_git_output(user, &["config", "--local", "-z", "--get-regexp", SETTINGS])?.unwrap_or_default();
    // A remote that is a folder may be named from the top of the tree.
    let top = try_git_output(user, &["rev-parse", "--show-toplevel"])?
        .map(|top| top.trim_end_matches('\n').to_owned());
    let top = top.as_deref().map_or(common, Path::new);
    let mut lines = String::new();
    for setting in settings.split('\0').filter(|setting| !setting.is_empty()) {
        // "NAME\nVALUE"; a name without a value is one that is set to true.
        let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
        let is_folder =
            name.starts_with("remote.") && name.rsplit('.').next() == Some("url") && value.starts_with('.');
        let absolute = top.join(value);
        let absolute = absolute.to_string_lossy();
        lines += &as_lines(name, if is_folder { &absolute } else { value });
    }
    add_settings(&folder.join("config"), &lines).with_context(|| at("config"))?;
    let large = common.join("lfs");
    if large.is_dir() {
        git_output(folder, &["config", "lfs.storage", &large.to_string_lossy()])?;
    }
    // Programs ask for their version by tags and branches.
    let format = "create %(refname) %(objectname)";
    let refs =
        git_output(user, &["for-each-ref", "--format", format, "refs/heads", "refs/tags", "refs/remotes"])?;
    // The name of a remote's own branch points to another reference, and is not needed.
    let refs: Vec<&str> = refs.lines().filter(|line| !line.contains("/HEAD ")).collect();
    if !refs.is_empty() {
        git_output_with_stdin(folder, &["update-ref", "--stdin"], &(refs.join("\n") + "\n"))?;
    }
    Ok(())
}

/// A setting as it stands in git's files.
fn as_lines(name: &str, value: &str) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let (section, rest) = name.split_once('.').unwrap_or((name, ""));
    // The part between the first and the last dot may have dots of its own, as an address has.
    let (below, key) = rest.rsplit_once('.').unwrap_or(("", rest));
    let below = if below.is_empty() { String::new() } else { format!(" \"{}\"", escaped(below)) };
    let value = escaped(value).replace('\n', "\\n").replace('\t', "\\t");
    format!("[{section}{below}]\n\t{key} = \"{value}\"\n")
}

/// Adds lines to the settings, for this user's eyes alone. Not by `git config`: other users see what a process is called
/// with, and an address or header may hold a token.
fn add_settings(path: &Path, lines: &str) -> io::Result<()> {
    #[cfg(unix)]
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    File::options().append(true).open(path)?.write_all(lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_user_arrive_as_they_are_and_nobody_else_reads_them() {
        let dir = tempfile::tempdir().unwrap();
        let (user, ours) = (dir.path().join("user"), dir.path().join("ours.git"));
        std::fs::create_dir(&user).unwrap();
        git_output(&user, &["init", "--quiet"]).unwrap();
        let settings = [
            (
                "http.https://a.example/.extraheader",
                "AUTHORIZATION: basic c2VjcmV0; # \"quoted\" \\ and\ttab",
            ),
            ("remote.a.b.url", "https://token@b.example/x"),
            ("core.autocrlf", "false"),
            ("url.https://c.example/.insteadof", "c:"),
        ];
        for (name, value) in settings {
            git_output(&user, &["config", name, value]).unwrap();
        }
        make(&user, &user.join(".git"), &ours).unwrap();
        for (name, value) in settings {
            let said = git_output(&ours, &["config", "--local", "-z", "--get-all", name]).unwrap();
            assert_eq!(said, format!("{value}\0"), "{name}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = ours.join("config").metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{mode:o}");
        }
    }
}
