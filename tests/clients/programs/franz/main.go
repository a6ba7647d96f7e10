// franz-go with its defaults: `produce BOOTSTRAP TOPIC COUNT` or `consume BOOTSTRAP TOPIC`.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	mode, topic := os.Args[1], os.Args[3]
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(os.Args[2], ",")...)}
	if mode == "produce" {
		options = append(options, kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation())
	} else {
		options = append(options, kgo.ConsumeTopics(topic), kgo.ConsumerGroup("group-"+topic))
	}
	client, err := kgo.NewClient(options...)
	check(err)
	defer client.Close()
	background := context.Background()
	if mode == "produce" {
		count, err := strconv.Atoi(os.Args[4])
		check(err)
		for n := 0; n < count; n++ {
			record := kgo.StringRecord(strconv.Itoa(n))
			check(client.ProduceSync(background, record).FirstErr())
			fmt.Println(n)
		}
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
