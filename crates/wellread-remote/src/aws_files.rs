//! `~/.aws/config` and `~/.aws/credentials`: the profile that AWS's own programs would use.
//!
//! ```text
//!  [default]           [profile lab]            names of profiles in `config`; in `credentials` without `profile`
//!  region = eu-west-1  endpoint_url = http://…
//! ```

use crate::environment::{home, variable};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The settings of a profile in two files. Its values are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    name: String,
    values: BTreeMap<String, String>,
    /// The file that has the key.
    file: PathBuf,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, or `default`.
    ///
    /// # Errors
    /// A profile that was named and is in neither file.
    pub(crate) fn load() -> io::Result<Self> {
        let at_home = |name: &str| home().unwrap_or_default().join(".aws").join(name);
        let file = |name: &str, default: &str| variable(name).map_or_else(|| at_home(default), PathBuf::from);
        let config = file("AWS_CONFIG_FILE", "config");
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let named = variable("AWS_PROFILE").or_else(|| variable("AWS_DEFAULT_PROFILE"));
        Self::read(&config, &credentials, named.as_deref())
    }

    fn read(config: &Path, credentials: &Path, named: Option<&str>) -> io::Result<Self> {
        let name = named.unwrap_or("default");
        // A comment may have characters of another encoding.
        let text = |path: &Path| {
            let bytes = std::fs::read(path).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        // AWS's own programs put quotes around names with spaces.
        let is_ours = |section: &str| {
            section.strip_prefix("profile").is_some_and(|rest| rest.trim().trim_matches(['"', '\'']) == name)
        };
        let in_config = section(&text(config), |section| section == name || is_ours(section));
        let in_credentials = section(&text(credentials), |section| section == name);
        if in_config.is_none() && in_credentials.is_none() && named.is_some() {
            let cause = format!(
                "AWS_PROFILE names the profile {name}, which is in neither ~/.aws/config nor ~/.aws/credentials"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, cause));
        }
        let has_key = in_credentials.as_ref().is_some_and(|values| values.contains_key("aws_access_key_id"));
        let file = if has_key { credentials } else { config }.to_owned();
        let mut values = in_config.unwrap_or_default();
        values.extend(in_credentials.unwrap_or_default());
        Ok(Self { name: name.to_owned(), values, file })
    }

    /// One of its values.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Its name where credentials are named by their source.
    pub(crate) fn who(&self) -> String {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy();
        format!("profile {} of AWS's {file} file", self.name)
    }

    /// How it gets credentials that AWS's own programs fetch, where it does.
    pub(crate) fn fetched_by(&self) -> Option<&'static str> {
        [
            ("sso_session", "SSO"),
            ("sso_start_url", "SSO"),
            ("role_arn", "a role"),
            ("credential_process", "a program"),
        ]
        .into_iter()
        .find_map(|(key, by)| self.get(key).map(|_| by))
    }

    /// The profile's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// The values of the sections that `is_wanted`; `None` where there are none.
fn section(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<BTreeMap<String, String>> {
    let (mut found, mut inside) = (None, false);
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = trimmed.strip_prefix('[') {
            inside = is_wanted(rest.split(']').next().unwrap_or_default().trim());
            if inside {
                found.get_or_insert_with(BTreeMap::new);
            }
            continue;
        }
        // An indented line belongs to the setting above it.
        if !inside || line.starts_with([' ', '\t']) {
            continue;
        }
        if let (Some((key, value)), Some(found)) = (trimmed.split_once('='), &mut found) {
            let value = value.split(" #").next().unwrap_or_default();
            found.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# mine\n[default]\nregion = eu-west-1\n\n[profile lab]\nregion=us-west-2 # near\n\
                          s3 =\n    max_concurrent_requests = 20\nendpoint_url = http://store:9000\n[profile other]\nsso_session = s\n";
    const CREDENTIALS: &str =
        "[default]\naws_access_key_id = A\naws_secret_access_key = B=\n[lab]\naws_access_key_id = C\n";

    fn profile(named: Option<&str>) -> io::Result<Profile> {
        let dir = tempfile::tempdir().unwrap();
        let (config, credentials) = (dir.path().join("config"), dir.path().join("credentials"));
        std::fs::write(&config, CONFIG).unwrap();
        std::fs::write(&credentials, CREDENTIALS).unwrap();
        Profile::read(&config, &credentials, named)
    }

    #[test]
    fn both_files_make_a_profile() {
        let default = profile(None).unwrap();
        assert_eq!(
            (default.get("region"), default.get("aws_secret_access_key")),
            (Some("eu-west-1"), Some("B="))
        );
        let lab = profile(Some("lab")).unwrap();
        assert_eq!((lab.get("region"), lab.get("aws_access_key_id")), (Some("us-west-2"), Some("C")));
        assert_eq!(
            (lab.get("endpoint_url"), lab.get("max_concurrent_requests")),
            (Some("http://store:9000"), None)
        );
        assert_eq!(lab.who(), "profile lab of AWS's credentials file");
        assert_eq!(profile(Some("other")).unwrap().fetched_by(), Some("SSO"));
        assert!(profile(Some("none")).unwrap_err().to_string().contains("the profile none"));
        let debug = format!("{default:?}");
        assert!(!debug.contains("B=") && debug.contains("default"), "{debug}");
    }

    #[test]
    fn names_may_have_quotes_and_comments_other_encodings() {
        let dir = tempfile::tempdir().unwrap();
        let [config, credentials] = ["config", "credentials"].map(|name| dir.path().join(name));
        std::fs::write(&config, b"# M\xfcller\n[profile \"my lab\"]\nregion = eu-west-1\n").unwrap();
        std::fs::write(&credentials, "[my lab]\naws_access_key_id = A\n").unwrap();
        let lab = Profile::read(&config, &credentials, Some("my lab")).unwrap();
        assert_eq!((lab.get("region"), lab.get("aws_access_key_id")), (Some("eu-west-1"), Some("A")));
    }

    #[test]
    fn without_files_there_is_nothing() {
        let none = Profile::read(Path::new("/none/a"), Path::new("/none/b"), None).unwrap();
        assert_eq!((none.get("region"), none.fetched_by()), (None, None));
    }
}
