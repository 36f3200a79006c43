//! prove SERVER KEY WITNESS VERIFICATION_KEY: one proof from the fleet, verified here, on standard output.
//! A server with TLS wants BELLOWS_TLS_CA, BELLOWS_TLS_CERT and BELLOWS_TLS_KEY, as `bellows submit` does.
//!
//! Rust over libbellows, without crates: rustc -O prove.rs $(pkg-config --libs-only-L bellows) -l bellows
use std::env;
use std::ffi::{c_void, CStr, CString};
use std::os::raw::{c_char, c_int, c_uint};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Error {
    answer: c_int,
    name: [c_char; 24],
    detail: [c_char; 512],
}
#[repr(C)]
struct Options {
    server: *const c_char,
    tenant: *const c_char,
    prefix: *const c_char,
    ca_file: *const c_char,
    cert_file: *const c_char,
    key_file: *const c_char,
    creds_file: *const c_char,
    plaintext: c_int,
}
#[repr(C)]
struct Witness {
    path: *const c_char,
    wtns: *const c_void,
    wtns_bytes: usize,
}
type Handle = *mut c_void;

extern "C" {
    fn bellows_open(out: *mut Handle, options: *const Options, error: *mut Error) -> c_int;
    fn bellows_close(fleet: *mut Handle);
    fn bellows_key_open(out: *mut Handle, path: *const c_char, flags: c_uint, error: *mut Error) -> c_int;
    fn bellows_key_close(key: *mut Handle);
    fn bellows_submit(
        out: *mut Handle, fleet: Handle, key: Handle, witnesses: *const Witness, count: usize, options: *const c_void,
        error: *mut Error,
    ) -> c_int;
    fn bellows_job_id(job: Handle) -> *const c_char;
    fn bellows_job_close(job: *mut Handle);
    fn bellows_wait(out: *mut Handle, job: Handle, timeout_ms: u64, error: *mut Error) -> c_int;
    fn bellows_result_proof(result: Handle, idx: usize) -> *const c_char;
    fn bellows_result_public(result: Handle, idx: usize) -> *const c_char;
    fn bellows_result_free(result: *mut Handle);
    fn bellows_verify(
        vkey: *const c_char, public: *const c_char, proof: *const c_char, flags: c_uint, error: *mut Error,
    ) -> c_int;
}

/// Closes what it holds when it goes out of scope, in reverse order of making.
struct Owned(Handle, unsafe extern "C" fn(*mut Handle));
impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { (self.1)(&mut self.0) }
    }
}

fn make(close: unsafe extern "C" fn(*mut Handle), open: impl FnOnce(*mut Handle, *mut Error) -> c_int) -> Result<Owned, String> {
    let (mut handle, mut error) = (null_mut(), Error { answer: 0, name: [0; 24], detail: [0; 512] });
    match open(&mut handle, &mut error) {
        0 => Ok(Owned(handle, close)),
        _ => Err(format!("{}: {}", text(error.name.as_ptr()), text(error.detail.as_ptr()))),
    }
}

fn text(chars: *const c_char) -> String {
    unsafe { CStr::from_ptr(chars) }.to_string_lossy().into_owned()
}

fn prove(arguments: &[String]) -> Result<String, String> {
    let words: Vec<CString> = arguments.iter().map(|word| CString::new(word.as_str()).unwrap()).collect();
    let vkey = CString::new(std::fs::read(&arguments[3]).map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    let settings = ["TENANT", "TLS_CA", "TLS_CERT", "TLS_KEY"]
        .map(|name| env::var(format!("BELLOWS_{name}")).ok().map(|value| CString::new(value).unwrap()));
    let [tenant, ca_file, cert_file, key_file] =
        [0, 1, 2, 3].map(|i| settings[i].as_ref().map_or(null(), |value: &CString| value.as_ptr()));
    let options = Options {
        server: words[0].as_ptr(),
        tenant,
        prefix: null(),
        ca_file,
        cert_file,
        key_file,
        creds_file: null(),
        plaintext: 0,
    };
    let witness = Witness { path: words[2].as_ptr(), wtns: null(), wtns_bytes: 0 };
    unsafe {
        let fleet = make(bellows_close, |out, error| bellows_open(out, &options, error))?;
        let key = make(bellows_key_close, |out, error| bellows_key_open(out, words[1].as_ptr(), 0, error))?;
        let job = make(bellows_job_close, |out, error| bellows_submit(out, fleet.0, key.0, &witness, 1, null(), error))?;
        eprintln!("job {}", text(bellows_job_id(job.0)));
        let result = make(bellows_result_free, |out, error| bellows_wait(out, job.0, 60000, error))?;
        let proof = bellows_result_proof(result.0, 0);
        make(bellows_result_free, |_, error| {
            bellows_verify(vkey.as_ptr(), bellows_result_public(result.0, 0), proof, 0, error)
        })?;
        Ok(text(proof))
    }
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.len() != 4 {
        eprintln!("usage: prove SERVER KEY WITNESS VERIFICATION_KEY");
        std::process::exit(2);
    }
    match prove(&arguments) {
        Ok(proof) => println!("{proof}"),
        Err(why) => {
            eprintln!("prove: {why}");
            std::process::exit(1);
        }
    }
}
