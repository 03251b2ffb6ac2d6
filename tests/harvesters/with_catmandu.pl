# Harvests each base URL by Catmandu::OAI and prints the records as a line of JSON.
use strict;
use warnings;

use Catmandu::Importer::OAI;
use JSON::PP;

$| = 1;
# Warnings are not printed. An exception contains the error.
$SIG{__WARN__} = sub { };

for my $base_url (@ARGV) {
    my @records;
    my $error;
    eval {
        my $importer = Catmandu::Importer::OAI->new(url => $base_url, metadataPrefix => 'oai_dc');
        $importer->each(sub {
            my ($record) = @_;
            push @records, [
                @$record{qw(_identifier _datestamp)},
                map { $record->{$_} ? $record->{$_}[0] : undef } qw(title description),
            ];
        });
        1;
    } or $error = "$@" || 'died';
    print JSON::PP->new->ascii->canonical->encode({ records => \@records, error => $error }), "\n";
}
