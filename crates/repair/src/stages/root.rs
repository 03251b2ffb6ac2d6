//! What a response says before its head: the start tag of the document element, and the text before it.
//!
//! The prolog fills it in. All later stages read it.

use crate::lex::doctype::Entities;
use crate::lex::namespaces::Context;
use crate::v1::envelope::V1Response;

/// The document element of a response.
#[derive(Debug, Default)]
pub(crate) struct Root {
    prefix: Vec<u8>,
    context: Context,
    written_context: Context,
    tag: Vec<u8>,
    corrected_namespaces: Vec<Vec<u8>>,
    version: Option<&'static str>,
    v1: Option<V1Response>,
    entities: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Root {
    /// Returns the prefix of the OAI-PMH namespace with its colon; empty if there is none.
    #[inline]
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Returns its declarations as received.
    pub(crate) fn context(&self) -> Context {
        self.context
    }

    /// Returns its declarations as written.
    pub(crate) fn written_context(&self) -> Context {
        self.written_context
    }

    /// Sets its prefix, and its declarations as received. They are written so, unless they are set again.
    pub(crate) fn set_name(&mut self, prefix: &[u8], context: Context) {
        self.prefix = if prefix.is_empty() { Vec::new() } else { [prefix, b":"].concat() };
        self.context = context;
        self.written_context = context;
    }

    pub(crate) fn set_written_context(&mut self, context: Context) {
        self.written_context = context;
    }

    /// Returns its start tag as written.
    pub(crate) fn tag(&self) -> &[u8] {
        &self.tag
    }

    pub(crate) fn set_tag(&mut self, tag: Vec<u8>) {
        self.tag = tag;
    }

    /// Returns the prefixes whose namespaces were corrected on it, if provenance is configured.
    pub(crate) fn corrected_namespaces(&self) -> &[Vec<u8>] {
        &self.corrected_namespaces
    }

    pub(crate) fn set_corrected_namespaces(&mut self, prefixes: Vec<Vec<u8>>) {
        self.corrected_namespaces = prefixes;
    }

    /// Returns the version of OAI-PMH, if it is known.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.version
    }

    pub(crate) fn set_version(&mut self, version: Option<&'static str>) {
        self.version = version;
    }

    /// Returns the facts of a response of OAI-PMH 1.x.
    pub(crate) fn v1(&self) -> Option<&V1Response> {
        self.v1.as_ref()
    }

    pub(crate) fn v1_mut(&mut self) -> Option<&mut V1Response> {
        self.v1.as_mut()
    }

    pub(crate) fn is_v1(&self) -> bool {
        self.v1.is_some()
    }

    pub(crate) fn set_v1(&mut self, v1: V1Response) {
        self.v1 = Some(v1);
    }

    /// Returns the entities that a declaration before it defines.
    pub(crate) fn entities(&self) -> &Entities {
        &self.entities
    }

    pub(crate) fn set_entities(&mut self, entities: Vec<(Vec<u8>, Vec<u8>)>) {
        self.entities = entities;
    }
}
