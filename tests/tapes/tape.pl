#!/usr/bin/perl
# Reads and writes tapes with XML::Tape.
#
#   tape.pl read TAPE        prints each record as a JSON array: identifier, date, XML
#   tape.pl write TAPE DIR   writes a tape of the files in DIR, named by their numbers
use strict;
use warnings;
use JSON::PP;
use XML::Tape qw(:all);

my ($task, $file, $folder) = @ARGV;
binmode(STDOUT, ':utf8');
if ($task eq 'read') {
    my $tape = tapeopen($file, 'r') or die "cannot open $file";
    my $json = JSON::PP->new;
    while (my $record = $tape->get_record()) {
        my $xml = $record->getRecord;
        utf8::decode($xml);
        print $json->encode([$record->getIdentifier, $record->getDate, $xml]), "\n";
    }
    $tape->tapeclose();
} else {
    my $tape = tapeopen($file, 'w', '<dc:date xmlns:dc="http://purl.org/dc/elements/1.1/">2005-05-31</dc:date>');
    opendir(my $files, $folder) or die $folder;
    for my $number (sort grep { /^\d+$/ } readdir $files) {
        open(my $in, '<', "$folder/$number") or die $number;
        local $/ = undef;
        $tape->add_record("info:letters/$number", "2005-05-31T00:00:00Z", scalar <$in>, '<x xmlns="urn:x">1</x>');
    }
    $tape->tapeclose();
}
