//! Credentials of a machine. Each case has a process of its own, since all tests of one share the environment.

use crate::server;
use std::path::Path;
use std::process::Command;
use wellread_store::place;

/// Says to the program that is started again which role its machine has.
const ROLE: &str = "WELLREAD_TEST_ROLE";
/// Variables that would say where credentials are, or that none are looked for.
const OTHERS: [&str; 16] = [
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_SKIP_SIGNATURE",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_SKIP_SIGNATURE",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "IDENTITY_ENDPOINT",
    "WELLREAD_ANONYMOUS",
];

const OTHERS_OF_GOOGLE: [&str; 6] = [
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
    "SERVICE_ACCOUNT",
    "STORAGE_EMULATOR_HOST",
];

/// The program that is started again: a machine whose metadata server is that of the tests.
#[test]
fn reader() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let url = server::url();
    // SAFETY: no other test runs in this process, and no other thread reads the environment.
    unsafe {
        std::env::remove_var("AWS_ACCESS_KEY_ID");
        std::env::remove_var("AWS_SECRET_ACCESS_KEY");
        std::env::set_var("AWS_METADATA_ENDPOINT", url);
        // A busy machine answers late.
        std::env::set_var("AWS_METADATA_SERVICE_TIMEOUT", "600");
    }
    let path = Path::new("s3://of-a-machine/a");
    server::put("of-a-machine/a", b"bytes");
    if !role.is_empty() {
        server::put("latest/meta-data/iam/security-credentials/", role.as_bytes());
    }
    let credentials = place::of(path).link().unwrap().about(path).unwrap().credentials;
    if role.is_empty() {
        assert!(credentials.starts_with("none were found"), "{credentials}");
        assert_eq!(place::read(path).unwrap(), b"bytes");
    } else {
        assert!(credentials.starts_with("the role of this machine"), "{credentials}");
        // The server has none for the role.
        let error = place::read(path).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no credentials could be had: the server answered 404"), "{text}");
        assert!(text.contains("; credentials: the role of this machine"), "{text}");
        assert_eq!(error.kind(), std::io::ErrorKind::Other, "{text}");
        assert!(place::metadata(path).unwrap_err().to_string().contains("no credentials could be had"));
    }
    println!("the role {role:?} is known");
}

/// The output of a test in a process of its own.
fn said_by(test: &str, role: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(ROLE, role);
    for name in OTHERS {
        child.env_remove(name);
    }
    let done = child.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    said
}

#[test]
fn a_machine_without_a_role_reads_public_buckets() {
    for role in ["", "lab"] {
        let said = said_by("credentials::reader", role);
        assert!(said.contains(&format!("the role {role:?} is known")), "{said}");
    }
}

/// The program that is started again: its keys are from files that end in a line break.
#[test]
fn reader_with_line_breaks() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    server::url();
    // SAFETY: no other test runs in this process, and no other thread reads the environment.
    unsafe {
        std::env::set_var("AWS_ACCESS_KEY_ID", "the-key-id\n");
        std::env::set_var("AWS_SECRET_ACCESS_KEY", "the-secret\n");
        std::env::set_var("AWS_SESSION_TOKEN", "the-token\n");
    }
    server::put("line-breaks/a", b"bytes");
    assert_eq!(place::read(Path::new("s3://line-breaks/a")).unwrap(), b"bytes");
    println!("the object was read");
}

#[test]
fn keys_may_end_in_a_line_break() {
    let said = said_by("credentials::reader_with_line_breaks", "");
    assert!(said.contains("the object was read"), "{said}");
}

/// The program that is started again: variables that a container is given and that nobody has set are empty.
#[test]
fn reader_with_empty_variables() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    server::url();
    let empty = ["AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_UNSIGNED_PAYLOAD"];
    for name in empty.into_iter().chain(["GOOGLE_APPLICATION_CREDENTIALS", "SERVICE_ACCOUNT"]) {
        // SAFETY: no other test runs in this process, and no other thread reads the environment.
        unsafe { std::env::set_var(name, "") };
    }
    server::put("empty-variables/a", b"bytes");
    server::put("google-empty-variables/a", b"bytes");
    for address in ["s3://empty-variables/a", "gs://google-empty-variables/a"] {
        assert_eq!(place::read(Path::new(address)).unwrap(), b"bytes", "{address}");
    }
    println!("the objects were read");
}

#[test]
fn variables_without_a_value_are_not_set() {
    let said = said_by("credentials::reader_with_empty_variables", "");
    assert!(said.contains("the objects were read"), "{said}");
}

/// The program that is started again: gcloud has its files elsewhere than at home.
#[test]
fn reader_after_a_login() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("application_default_credentials.json"), "{").unwrap();
    for name in OTHERS_OF_GOOGLE {
        // SAFETY: no other test runs in this process, and no other thread reads the environment.
        unsafe { std::env::remove_var(name) };
    }
    // SAFETY: as above.
    unsafe { std::env::set_var("CLOUDSDK_CONFIG", folder.path()) };
    let path = Path::new("gs://of-a-login/a");
    // Nothing is asked for yet, but the file was read.
    let error = place::of(path).link().unwrap().about(path).unwrap_err().to_string();
    assert!(error.contains("cannot connect to gs://of-a-login"), "{error}");
    println!("the login was found");
}

#[test]
fn a_login_is_found_where_gcloud_keeps_it() {
    let said = said_by("credentials::reader_after_a_login", "");
    assert!(said.contains("the login was found"), "{said}");
}

/// The program that is started again: a machine of Azure, whose metadata server is that of the tests.
#[test]
fn reader_in_azure() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let url = server::url();
    // SAFETY: no other test runs in this process, and no other thread reads the environment.
    unsafe {
        std::env::set_var("AZURE_STORAGE_ACCOUNT_NAME", "lab");
        std::env::set_var("AZURE_POD_IDENTITY_AUTHORITY_HOST", url);
        // A busy machine answers late.
        std::env::set_var("AZURE_METADATA_SERVICE_TIMEOUT", "600");
    }
    if !role.is_empty() {
        server::put("metadata/identity/oauth2/token", b"{}");
    }
    let path = Path::new("az://of-a-machine/a");
    let credentials = place::of(path).link().unwrap().about(path).unwrap().credentials;
    println!("credentials: {credentials}");
}

#[test]
fn a_machine_of_azure_has_its_identity_or_reads_public_containers() {
    for (role, expected) in
        [("", "none were found in environment and machine"), ("lab", "the identity of this machine")]
    {
        let said = said_by("credentials::reader_in_azure", role);
        assert!(said.contains(&format!("credentials: {expected}")), "{said}");
    }
}
