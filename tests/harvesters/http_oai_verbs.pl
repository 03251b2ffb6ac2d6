# Asks a base URL by HTTP::OAI, all six verbs, and prints what came as a line of JSON; see verbs.py.
use strict;
use warnings;

# Told to wait by Retry-After it would sleep; here that is the answer.
BEGIN { *CORE::GLOBAL::sleep = sub { die "told to ask again in $_[0] seconds\n" } }

use HTTP::OAI;
use JSON::PP;

my ($base_url, $plan) = ($ARGV[0], JSON::PP->new->utf8->decode($ARGV[1]));
my $harvester = HTTP::OAI::Harvester->new(baseURL => $base_url);
$harvester->timeout(20);

# What is a number to Perl must not become one in JSON, nor the other way round.
sub text { return defined $_[0] ? "$_[0]" : undef }

sub header_of {
    my ($header) = @_;
    my $deleted = $header->is_deleted ? JSON::PP::true : JSON::PP::false;
    return [text($header->identifier), text($header->datestamp), [sort $header->setSpec], $deleted];
}

sub record_of {
    my ($record) = @_;
    my %fields;
    if (!$record->is_deleted && $record->metadata) {
        my @elements = $record->metadata->dom->findnodes('descendant::*[local-name() = "dc"]/*');
        push @{ $fields{ $_->localname } }, $_->textContent for @elements;
    }
    return [@{ header_of($record->header) }, \%fields];
}

sub whole {
    my ($response) = @_;
    die $response->code . ' ' . $response->message . "\n" if $response->is_error;
    return $response;
}

# By callback: a loop over next() sees the items of the last page only.
sub list_of {
    my ($verb, $read, %arguments) = @_;
    my @items;
    whole($harvester->$verb(%arguments, onRecord => sub { push @items, $read->($_[0]) }));
    return \@items;
}

sub record_named {
    my ($identifier) = @_;
    my $response = whole($harvester->GetRecord(identifier => $identifier, metadataPrefix => 'oai_dc'));
    return record_of($response->next);
}

sub error_of {
    my ($response) = @_;
    my ($error) = $response->errors;
    return $error ? text($error->code) : undef;
}

my @dc = (metadataPrefix => 'oai_dc');
my $identify = whole($harvester->Identify);
my $formats = whole($harvester->ListMetadataFormats);
my @formats = map { [text($_->metadataPrefix), text($_->schema), text($_->metadataNamespace)] } $formats->metadataFormat;
print JSON::PP->new->ascii->canonical->encode({
    identify => [map { text(scalar $identify->$_) }
        qw(repositoryName protocolVersion earliestDatestamp deletedRecord granularity adminEmail)],
    formats => \@formats,
    sets => list_of('ListSets', sub { [text($_[0]->setSpec), text($_[0]->setName)] }),
    identifiers => list_of('ListIdentifiers', \&header_of, @dc),
    records => list_of('ListRecords', \&record_of, @dc),
    of_a_set => list_of('ListRecords', \&record_of, @dc, set => $plan->{set}),
    of_some_days => list_of('ListIdentifiers', \&header_of, @dc, from => $plan->{from}, until => $plan->{until}),
    one => record_named($plan->{identifier}),
    deleted => record_named($plan->{deleted}),
    unknown => error_of($harvester->GetRecord(@dc, identifier => $plan->{unknown})),
    none => error_of($harvester->ListRecords(@dc, from => $plan->{never}, onRecord => sub { die 'a record' })),
}), "\n";
