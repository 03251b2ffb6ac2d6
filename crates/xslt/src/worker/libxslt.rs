//! libxslt and libxml2, loaded at run time: nearly all unsafe code of the project beside the allocator.
//!
//! The libraries are C with a stable interface (`libxslt.so.1`). Their functions are taken from the library that the
//! loader found; a search in libxslt finds those of the libxml2 that it was linked to. [`Libxslt`] and its results are
//! safe to use: they are neither `Send` nor `Sync`, all pointers stay inside this file, and each is freed once.
//!
//! Memory that cannot be allocated ends the process, so that no code of the libraries continues without it.
#![allow(unsafe_code, reason = "calls a C library")]

use crate::failure::{FailureKind, SheetFailure};
use crate::limits::FAILURE_BYTES_MAX;
use crate::message::MEMORY_EXIT_CODE;
use libloading::Library as Loaded;
use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// `XML_PARSE_NONET | XML_PARSE_NOCDATA`: no network, and sections become text, as XSLT sees them. Entities and document
/// types are not loaded, and the limits of libxml2 for depth and length stay in force.
const PARSE_OPTIONS: c_int = (1 << 11) | (1 << 14);
/// The URL of each sheet. It is in messages, and `document('')` means it.
const SHEET_URL: &CStr = c"sheet.xsl";
/// `XSLT_STATE_OK`.
const STATE_OK: c_int = 0;
/// Number of payload bytes after which the parser is replaced, because it keeps all names that it has seen.
const PARSER_BYTES_MAX: usize = 1 << 20;
/// The functions that forbid: reading and writing files, folders and the network (`xsltSecurityOption`).
const SECURITY_OPTIONS: [(c_int, SecurityCheck); 5] =
    [(1, may_read), (2, may_not), (3, may_not), (4, may_read), (5, may_not)];

/// Types of the libraries whose content is of no interest.
macro_rules! opaque {
    ($($name:ident)+) => { $(#[repr(C)] struct $name { _private: [u8; 0] })+ };
}
opaque! { XmlDoc XmlParser XmlDict XsltStylesheet XsltSecurity XmlInput }

/// The start of `struct _xsltTransformContext` (`libxslt/xsltInternals.h`), up to the only field that is read. It belongs
/// to the interface of libxslt.so.1: `xsltproc` reads the field in the same way.
#[repr(C)]
struct XsltContext {
    style: *mut c_void,
    output_type: c_int,
    template: *mut c_void,
    template_counts: [c_int; 2],
    templates: *mut c_void,
    variables: *mut c_void,
    variable_counts: [c_int; 2],
    variable_table: *mut c_void,
    variable_base: c_int,
    extensions: [*mut c_void; 3],
    mode: [*const c_void; 2],
    documents: [*mut c_void; 2],
    nodes: [*mut c_void; 2],
    output: [*mut c_void; 2],
    xpath: *mut c_void,
    state: c_int,
}

type SecurityCheck = unsafe extern "C" fn(*mut XsltSecurity, *mut XsltContext, *const c_char) -> c_int;
type Loader = unsafe extern "C" fn(*const c_char, *mut XmlDict, c_int, *mut c_void, c_int) -> *mut XmlDoc;
type EntityLoader = unsafe extern "C" fn(*const c_char, *const c_char, *mut XmlParser) -> *mut XmlInput;
type Allocator = unsafe extern "C" fn(usize) -> *mut c_void;
type Reallocator = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Duplicator = unsafe extern "C" fn(*const c_char) -> *mut c_char;
type Deallocator = unsafe extern "C" fn(*mut c_void);

/// Declares the functions that are used, each with its name in the library and its type.
macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),*) $(-> $result:ty)?;)+) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl Functions {
            /// # Safety
            ///
            /// The library is libxslt.so.1, whose headers declare the functions with these types.
            unsafe fn of(library: &Loaded) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the caller promises the types. The library is never unloaded.
                    $($field: *unsafe { library.get(concat!($name, "\0"))? },)+
                })
            }
        }
    };
}

functions! {
    set_allocator = "xmlMemSetup": fn(Deallocator, Allocator, Reallocator, Duplicator) -> c_int;
    init_parser = "xmlInitParser": fn();
    set_entity_loader = "xmlSetExternalEntityLoader": fn(EntityLoader);
    set_xml_messages = "xmlSetGenericErrorFunc": fn(*mut libc::FILE, *const c_void);
    new_parser = "xmlNewParserCtxt": fn() -> *mut XmlParser;
    free_parser = "xmlFreeParserCtxt": fn(*mut XmlParser);
    parse = "xmlCtxtReadMemory": fn(*mut XmlParser, *const c_char, c_int, *const c_char, *const c_char, c_int) -> *mut XmlDoc;
    free_document = "xmlFreeDoc": fn(*mut XmlDoc);
    write_document = "xmlDocDumpMemoryEnc": fn(*mut XmlDoc, *mut *mut u8, *mut c_int, *const c_char);
    set_xslt_messages = "xsltSetGenericErrorFunc": fn(*mut libc::FILE, *const c_void);
    set_loader = "xsltSetLoaderFunc": fn(Loader);
    new_security = "xsltNewSecurityPrefs": fn() -> *mut XsltSecurity;
    set_security = "xsltSetSecurityPrefs": fn(*mut XsltSecurity, c_int, SecurityCheck) -> c_int;
    set_default_security = "xsltSetDefaultSecurityPrefs": fn(*mut XsltSecurity);
    compile = "xsltParseStylesheetDoc": fn(*mut XmlDoc) -> *mut XsltStylesheet;
    new_context = "xsltNewTransformContext": fn(*mut XsltStylesheet, *mut XmlDoc) -> *mut XsltContext;
    free_context = "xsltFreeTransformContext": fn(*mut XsltContext);
    set_context_security = "xsltSetCtxtSecurityPrefs": fn(*mut XsltSecurity, *mut XsltContext) -> c_int;
    apply = "xsltApplyStylesheetUser": fn(*mut XsltStylesheet, *mut XmlDoc, *const *const c_char, *const c_char, *mut libc::FILE, *mut XsltContext) -> *mut XmlDoc;
    free_stylesheet = "xsltFreeStylesheet": fn(*mut XsltStylesheet);
}

/// The file of libxslt.
#[derive(Clone, Debug)]
pub struct Library {
    /// Its name or path, as the loader of the system takes it.
    pub name: OsString,
}

impl Default for Library {
    /// The name that all distributions share. It brings the libxml2 that it was linked to.
    fn default() -> Self {
        Self { name: "libxslt.so.1".into() }
    }
}

/// The loaded library, set up so that it reads nothing but what it is given.
pub(super) struct Libxslt {
    functions: &'static Functions,
    security: *mut XsltSecurity,
    messages: Messages,
    /// The parser, and the number of bytes that it has read.
    parser: RefCell<(Parser, usize)>,
    version: String,
}

/// A compiled sheet.
pub(super) struct Stylesheet {
    functions: &'static Functions,
    sheet: *mut XsltStylesheet,
}

/// The output of a transformation, as the library has written it.
pub(super) struct Output {
    bytes: *mut u8,
    length: usize,
}

impl Libxslt {
    /// Loads the library and sets it up. Call it once in a process, from its only thread.
    ///
    /// The error says which package to install.
    pub(super) fn load(library: &Library) -> Result<Self, String> {
        let missing = |error: libloading::Error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            format!(
                "libxslt cannot be loaded ({why}); install it (Debian and Ubuntu: apt install libxslt1.1, \
                 Fedora: dnf install libxslt, Alpine: apk add libxslt)"
            )
        };
        // SAFETY: the code that libxslt and its libraries run when they are loaded needs nothing from us.
        let loaded = unsafe { Loaded::new(&library.name) }.map_err(missing)?;
        // SAFETY: the types are those of the headers of libxslt 1.1 and libxml2 2.9 to 2.14.
        let functions = unsafe { Functions::of(&loaded) }.map_err(missing)?;
        // SAFETY: it is a constant string of the library.
        let version = unsafe {
            let name: libloading::Symbol<'_, *const *const c_char> =
                loaded.get("xsltEngineVersion\0").map_err(missing)?;
            CStr::from_ptr(**name).to_string_lossy().into_owned()
        };
        // The process needs both until it ends.
        std::mem::forget(loaded);
        let functions: &'static Functions = Box::leak(Box::new(functions));
        // SAFETY: nothing was allocated by the library yet. The callbacks have the types that it expects, and they are
        // functions of this program, so they are never gone.
        let security = unsafe {
            (functions.set_allocator)(deallocate, allocate, reallocate, duplicate);
            (functions.init_parser)();
            (functions.set_entity_loader)(load_no_entity);
            (functions.set_loader)(load_no_document);
            let security = (functions.new_security)();
            for (option, check) in SECURITY_OPTIONS {
                (functions.set_security)(security, option, check);
            }
            (functions.set_default_security)(security);
            security
        };
        let messages = Messages::new(functions)?;
        register_exslt();
        let parser = RefCell::new((Parser::new(functions), 0));
        Ok(Self { functions, security, messages, parser, version })
    }

    /// The version of the library.
    pub(super) fn version(&self) -> String {
        self.version.clone()
    }

    /// Compiles the text of a sheet, which is UTF-8. The error has the messages of the library.
    pub(super) fn compile(&self, text: &[u8]) -> Result<Stylesheet, String> {
        self.messages.clear();
        let Some(document) = self.parse(text, SHEET_URL.as_ptr()) else { return Err(self.messages.text()) };
        // SAFETY: the document is whole. It belongs to the sheet afterwards, if there is one.
        let sheet = unsafe { (self.functions.compile)(document.0) };
        if sheet.is_null() {
            return Err(self.messages.text());
        }
        std::mem::forget(document);
        Ok(Stylesheet { functions: self.functions, sheet })
    }

    /// Transforms a payload, which is UTF-8.
    pub(super) fn transform(&self, sheet: &Stylesheet, payload: &[u8]) -> Result<Output, SheetFailure> {
        self.messages.clear();
        let failure = |kind| SheetFailure::new(kind, self.messages.text());
        let document = self.parse(payload, null()).ok_or_else(|| failure(FailureKind::PayloadRefused))?;
        let result =
            self.apply(sheet, &document).ok_or_else(|| failure(FailureKind::TransformationFailed))?;
        let (mut bytes, mut length) = (null_mut(), 0);
        // SAFETY: the document is whole, and both places exist during the call.
        unsafe { (self.functions.write_document)(result.0, &mut bytes, &mut length, c"UTF-8".as_ptr()) };
        Ok(Output { bytes, length: usize::try_from(length).unwrap_or_default() })
    }

    /// The result tree. `None` if there was an error, of which the messages tell.
    fn apply(&self, sheet: &Stylesheet, document: &Document) -> Option<Document> {
        // SAFETY: sheet and document exist during the call. The context is used only here, and freed before both. It is
        // not null, because its memory was allocated. The library has set the field that is read.
        unsafe {
            let context = (self.functions.new_context)(sheet.sheet, document.0);
            if context.is_null() {
                return None;
            }
            let is_refused = (self.functions.set_context_security)(self.security, context) != 0;
            let result = if is_refused {
                null_mut()
            } else {
                (self.functions.apply)(sheet.sheet, document.0, null(), null(), null_mut(), context)
            };
            let state = (*context).state;
            (self.functions.free_context)(context);
            // Version 1.1.35 gives no result after an error. Whether older ones do is not certain.
            let result = Document::of(self.functions, result)?;
            if state == STATE_OK { Some(result) } else { None }
        }
    }

    /// Parses a document. `None` if it is not well-formed, of which the messages tell.
    fn parse(&self, text: &[u8], url: *const c_char) -> Option<Document> {
        let length = c_int::try_from(text.len()).ok()?;
        let mut slot = self.parser.borrow_mut();
        let (parser, bytes) = &mut *slot;
        *bytes += text.len();
        if *bytes > PARSER_BYTES_MAX {
            (*parser, *bytes) = (Parser::new(self.functions), text.len());
        }
        // SAFETY: the parser exists, and reads only the text, during the call. The encoding replaces a declared one.
        let document = unsafe {
            let text = text.as_ptr().cast();
            (self.functions.parse)(parser.parser, text, length, url, c"UTF-8".as_ptr(), PARSE_OPTIONS)
        };
        Document::of(self.functions, document)
    }
}

impl Output {
    /// The document in UTF-8, with its XML declaration.
    pub(super) fn bytes(&self) -> &[u8] {
        if self.bytes.is_null() {
            return &[];
        }
        // SAFETY: the library has written that many bytes there, and nobody changes them.
        unsafe { std::slice::from_raw_parts(self.bytes, self.length) }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: the library allocated it with `allocate`, or it is null.
        unsafe { libc::free(self.bytes.cast()) };
    }
}

impl Drop for Stylesheet {
    fn drop(&mut self) {
        // SAFETY: it is freed here only, and transformations with it are over.
        unsafe { (self.functions.free_stylesheet)(self.sheet) };
    }
}

/// A document. It is not null.
struct Document(*mut XmlDoc, &'static Functions);

impl Document {
    fn of(functions: &'static Functions, document: *mut XmlDoc) -> Option<Self> {
        if document.is_null() { None } else { Some(Self(document, functions)) }
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        // SAFETY: it is freed here only.
        unsafe { (self.1.free_document)(self.0) };
    }
}

/// A parser, which can be used again and again.
struct Parser {
    functions: &'static Functions,
    parser: *mut XmlParser,
}

impl Parser {
    fn new(functions: &'static Functions) -> Self {
        // SAFETY: the library is set up.
        Self { functions, parser: unsafe { (functions.new_parser)() } }
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        // SAFETY: it is freed here only. Documents keep the names that they share with it.
        unsafe { (self.functions.free_parser)(self.parser) };
    }
}

/// The messages of the libraries and of `xsl:message`, up to a limit. Functions of C write them, because only C can
/// define functions with any number of arguments, as the libraries call them.
struct Messages {
    file: *mut libc::FILE,
    /// Where the file writes. It lives as long as the process.
    buffer: &'static [Cell<u8>],
}

impl Messages {
    fn new(functions: &Functions) -> Result<Self, String> {
        let buffer: &'static mut [u8] = Box::leak(vec![0; FAILURE_BYTES_MAX].into_boxed_slice());
        let length = buffer.len();
        let buffer = Cell::from_mut(buffer).as_slice_of_cells();
        // SAFETY: the buffer is never freed, and has that length. Without a buffer of its own, the file forgets what has no
        // place. Both handlers are the default ones, which write to the given file.
        unsafe {
            let start = buffer.as_ptr().cast::<c_void>().cast_mut();
            let file = libc::fmemopen(start, length, c"w".as_ptr());
            if file.is_null() {
                return Err(format!("no memory for messages: {}", std::io::Error::last_os_error()));
            }
            libc::setvbuf(file, null_mut(), libc::_IONBF, 0);
            (functions.set_xml_messages)(file, null());
            (functions.set_xslt_messages)(file, null());
            Ok(Self { file, buffer })
        }
    }

    /// Forgets all messages.
    fn clear(&self) {
        // SAFETY: the file is open, and used by this thread only.
        unsafe { libc::rewind(self.file) };
    }

    /// The messages since they were cleared.
    fn text(&self) -> String {
        // SAFETY: as above.
        let length = usize::try_from(unsafe { libc::ftell(self.file) }).unwrap_or_default();
        let written: Vec<u8> = self.buffer.iter().take(length).map(Cell::get).collect();
        let text = String::from_utf8_lossy(&written);
        let text = text.trim_matches(|character: char| character.is_whitespace() || character == '\0');
        if text.is_empty() { "libxslt gives no reason".to_owned() } else { text.to_owned() }
    }
}

/// Registers the functions of EXSLT for strings, sets and node sets, if libexslt is there. It comes with libxslt. Others,
/// such as dates, depend on more than the record.
fn register_exslt() {
    // SAFETY: loading runs no code of ours, the functions have no arguments, and the library is never unloaded.
    unsafe {
        let Ok(library) = Loaded::new("libexslt.so.0") else { return };
        for name in ["exsltCommonRegister\0", "exsltSetsRegister\0", "exsltStrRegister\0"] {
            if let Ok(register) = library.get::<unsafe extern "C" fn()>(name) {
                register();
            }
        }
        std::mem::forget(library);
    }
}

/// Closes all files but stdin, stdout and stderr, which the process may have inherited. Kernels before 5.9 cannot do it.
///
/// # Safety
///
/// The process uses no other file descriptor afterwards.
pub(super) unsafe fn close_other_files() {
    // SAFETY: the call changes no memory, and the caller promises that nothing uses the closed descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
}

/// Allows `document('')`, which is the sheet itself: libxslt finds it without a loader.
unsafe extern "C" fn may_read(_: *mut XsltSecurity, _: *mut XsltContext, url: *const c_char) -> c_int {
    // SAFETY: libxslt passes a string that exists during the call.
    c_int::from(!url.is_null() && unsafe { CStr::from_ptr(url) } == SHEET_URL)
}

/// Allows nothing.
unsafe extern "C" fn may_not(_: *mut XsltSecurity, _: *mut XsltContext, _: *const c_char) -> c_int {
    0
}

/// Loads no document, whatever asks for it: `xsl:include`, `xsl:import` or `document()`.
unsafe extern "C" fn load_no_document(
    _: *const c_char,
    _: *mut XmlDict,
    _: c_int,
    _: *mut c_void,
    _: c_int,
) -> *mut XmlDoc {
    null_mut()
}

/// Loads no entity.
unsafe extern "C" fn load_no_entity(_: *const c_char, _: *const c_char, _: *mut XmlParser) -> *mut XmlInput {
    null_mut()
}

/// Ends the process if it got no memory.
fn expect_memory<T>(memory: *mut T, is_needed: bool) -> *mut T {
    if memory.is_null() && is_needed {
        // SAFETY: it runs no handlers, so it is safe wherever the library is.
        unsafe { libc::_exit(MEMORY_EXIT_CODE) }
    }
    memory
}

unsafe extern "C" fn allocate(bytes: usize) -> *mut c_void {
    // SAFETY: any number is legal.
    expect_memory(unsafe { libc::malloc(bytes) }, bytes > 0)
}

unsafe extern "C" fn reallocate(memory: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: libxml2 passes memory of these functions.
    expect_memory(unsafe { libc::realloc(memory, bytes) }, bytes > 0)
}

unsafe extern "C" fn duplicate(text: *const c_char) -> *mut c_char {
    // SAFETY: libxml2 passes a string.
    expect_memory(unsafe { libc::strdup(text) }, true)
}

unsafe extern "C" fn deallocate(memory: *mut c_void) {
    // SAFETY: libxml2 passes memory of these functions, once.
    unsafe { libc::free(memory) };
}
