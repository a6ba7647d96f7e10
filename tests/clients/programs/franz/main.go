// franz-go with its defaults: `produce BOOTSTRAP TOPIC` sends each line of its input and prints it when
// it is acknowledged; `consume BOOTSTRAP TOPIC`; `delete BOOTSTRAP TOPIC OFFSET` prints where the log
// starts then.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func main() {
	mode, topic := os.Args[1], os.Args[3]
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(os.Args[2], ",")...)}
	if mode == "produce" {
		options = append(options, kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation())
	} else if mode == "consume" {
		options = append(options, kgo.ConsumeTopics(topic), kgo.ConsumerGroup("group-"+topic))
	}
	client, err := kgo.NewClient(options...)
	check(err)
	defer client.Close()
	background := context.Background()
	if mode == "produce" {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			record := kgo.StringRecord(lines.Text())
			check(client.ProduceSync(background, record).FirstErr())
			fmt.Println(lines.Text())
		}
		return
	}
	if mode == "delete" {
		before, err := strconv.ParseInt(os.Args[4], 10, 64)
		check(err)
		partition := kmsg.NewDeleteRecordsRequestTopicPartition()
		partition.Offset = before
		named := kmsg.NewDeleteRecordsRequestTopic()
		named.Topic, named.Partitions = topic, append(named.Partitions, partition)
		request := kmsg.NewPtrDeleteRecordsRequest()
		request.Topics = append(request.Topics, named)
		response, err := request.RequestWith(background, client)
		check(err)
		answered := response.Topics[0].Partitions[0]
		check(kerr.ErrorForCode(answered.ErrorCode))
		fmt.Println(answered.LowWatermark)
		return
	}
	for {
		client.PollFetches(background).EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
		})
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
