//! File systems that are not the machine's own: files of /etc as a program is to see them.

use std::fs;
use std::path::Path;

use super::{Lease, keeper};

/// Words to put in front of a command, for [`Lease::wrapped`], so that it sees these texts in place of the files of
/// these paths. Nobody else does, and with the last process that sees them they are gone. The process stays the same one.
///
/// `None` where that is not allowed. A test that gets it says so: `skip("mount namespaces")`.
pub fn instead_of(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let mut script = String::new();
    for (path, text) in files {
        let name = Path::new(path).file_name()?.to_str()?;
        let file = keeper::dir("etc").join(name);
        fs::write(&file, text).expect("a file");
        script += &format!("mount --bind {} {path} && ", file.display());
    }
    script += "exec \"$@\"";
    let words = ["unshare", "-m", "sh", "-c", &script, "sh"].map(str::to_owned);
    let tried = Lease::program("true").wrapped(&words).output();
    (tried.code == Some(0)).then(|| words.to_vec())
}
