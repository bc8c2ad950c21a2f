// ranks: 2 4
// timeout: 100
// env: HEDDLE_PART_AGGREGATOR=table HEDDLE_PART_SIZE=300
// The program whose name lacks "joined", with neighbouring partitions that leave together.
#include "partitions_arrive_in_every_shape.cpp"
