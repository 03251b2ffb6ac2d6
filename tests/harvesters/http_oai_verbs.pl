# Sends all six verbs to a base URL by HTTP::OAI and prints the results as a line of JSON; see verbs.py.
use strict;
use warnings;

# HTTP::OAI sleeps for the time in Retry-After. Here a sleep is an error.
BEGIN { *CORE::GLOBAL::sleep = sub { die "Retry-After: $_[0]\n" } }

use HTTP::OAI;
use JSON::PP;

my ($base_url, $plan) = ($ARGV[0], JSON::PP->new->utf8->decode($ARGV[1]));
my $harvester = HTTP::OAI::Harvester->new(baseURL => $base_url);
$harvester->timeout(20);

my @format = (metadataPrefix => $plan->{prefix} // 'oai_dc');

# All values are strings in JSON, even if Perl holds them as numbers.
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

sub checked {
    my ($response) = @_;
    die $response->code . ' ' . $response->message . "\n" if $response->is_error;
    return $response;
}

# Uses a callback, because a loop over next() sees only the items of the last page.
sub list_of {
    my ($verb, $read, %arguments) = @_;
    my @items;
    checked($harvester->$verb(%arguments, onRecord => sub { push @items, $read->($_[0]) }));
    return \@items;
}

sub record_named {
    my ($identifier) = @_;
    my $response = checked($harvester->GetRecord(identifier => $identifier, @format));
    return record_of($response->next);
}

sub error_of {
    my ($response) = @_;
    my ($error) = $response->errors;
    return $error ? text($error->code) : undef;
}

my $identify = checked($harvester->Identify);
my $formats = checked($harvester->ListMetadataFormats);
my @formats = map { [text($_->metadataPrefix), text($_->schema), text($_->metadataNamespace)] } $formats->metadataFormat;
print JSON::PP->new->ascii->canonical->encode({
    identify => [map { text(scalar $identify->$_) }
        qw(repositoryName protocolVersion earliestDatestamp deletedRecord granularity adminEmail)],
    formats => \@formats,
    sets => list_of('ListSets', sub { [text($_[0]->setSpec), text($_[0]->setName)] }),
    identifiers => list_of('ListIdentifiers', \&header_of, @format),
    records => list_of('ListRecords', \&record_of, @format),
    set_records => list_of('ListRecords', \&record_of, @format, set => $plan->{set}),
    window_headers => list_of('ListIdentifiers', \&header_of, @format, from => $plan->{from}, until => $plan->{until}),
    record => record_named($plan->{identifier}),
    deleted => record_named($plan->{deleted}),
    unknown => error_of($harvester->GetRecord(@format, identifier => $plan->{unknown})),
    none => error_of($harvester->ListRecords(@format, from => $plan->{never}, onRecord => sub { die 'a record' })),
}), "\n";
