// The Java client's part of a history: `ROLE NAME BOOTSTRAP TOPIC PARTITIONS BEGAN_NS UNTIL_NS`.
// Roles and lines are those of confluent.py beside it.

import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Soak {
    static final long PERIOD_NS = 100_000_000L, SCAN_EVERY_NS = 20_000_000_000L;
    static final int VALUE_BYTES = 400;
    static final PrintStream OUT = new PrintStream(System.out, true);
    static String name, bootstrap, topic;
    static int partitions;
    static long beganNs, untilNs;
    static volatile String fatal = "";

    static synchronized void record(String op, String rest) {
        long atUs = (System.nanoTime() - beganNs) / 1000;
        OUT.println("{\"at_us\": " + atUs + ", \"client\": \"" + name + "\", \"op\": \"" + op + "\"" + rest + "}");
    }

    static String about(int partition, String record) {
        return ", \"partition\": \"" + topic + "-" + partition + "\", \"record\": \"" + record + "\"";
    }

    static KafkaProducer<String, String> openProducer() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", name);
        settings.put("enable.idempotence", "true");
        settings.put("acks", "all");
        settings.put("retries", Integer.toString(Integer.MAX_VALUE));
        settings.put("linger.ms", "5");
        settings.put("request.timeout.ms", "10000");
        settings.put("delivery.timeout.ms", "60000");
        settings.put("max.block.ms", "20000");
        var text = new StringSerializer();
        return new KafkaProducer<>(settings, text, text);
    }

    static void failed(int partition, String value, Exception error) {
        record("failed", about(partition, value) + ", \"error\": \"" + error.getClass().getSimpleName() + "\"");
        // What the producer cannot recover from (KafkaProducer.send).
        if (error instanceof OutOfOrderSequenceException || error instanceof ProducerFencedException
                || error instanceof AuthorizationException || error instanceof IllegalStateException) {
            fatal = error.getClass().getSimpleName();
        }
    }

    static void produce() throws Exception {
        var producer = openProducer();
        long next = System.nanoTime();
        for (int number = 0; System.nanoTime() < untilNs; number++) {
            long now = System.nanoTime();
            if (now < next) {
                TimeUnit.NANOSECONDS.sleep(next - now);
            }
            next = Math.max(next + PERIOD_NS, System.nanoTime() - 1_000_000_000L);
            String value = name + "." + number;
            int partition = number % partitions;
            record("send", about(partition, value));
            try {
                String padded = value + " ".repeat(VALUE_BYTES - value.length());
                producer.send(new ProducerRecord<>(topic, partition, value, padded), (sent, error) -> {
                    if (error == null) {
                        record("acknowledged", about(partition, value) + ", \"offset\": " + sent.offset());
                    } else {
                        failed(partition, value, error);
                    }
                });
            } catch (KafkaException | IllegalStateException error) {
                failed(partition, value, error);
            }
            if (!fatal.isEmpty()) {
                record("fatal", ", \"error\": \"" + fatal + "\"");
                producer.close(Duration.ofSeconds(5));
                fatal = "";
                producer = openProducer();
            }
        }
        producer.close(Duration.ofSeconds(75));
    }

    static void recordRun(int partition, int scan, List<ConsumerRecord<String, String>> run) {
        var values = new ArrayList<String>();
        for (var one : run) {
            values.add("\"" + one.value().stripTrailing() + "\"");
        }
        record("read", ", \"partition\": \"" + topic + "-" + partition + "\", \"scan\": " + scan + ", \"offset\": "
            + run.get(0).offset() + ", \"records\": [" + String.join(", ", values) + "]");
    }

    static boolean scanOnce(int scan, boolean last) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", name);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "none");
        settings.put("default.api.timeout.ms", "10000");
        settings.put("request.timeout.ms", "8000");
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<String, String>(settings, text, text)) {
            var all = new ArrayList<TopicPartition>();
            for (int partition = 0; partition < partitions; partition++) {
                all.add(new TopicPartition(topic, partition));
            }
            consumer.assign(all);
            Map<TopicPartition, Long> starts = consumer.beginningOffsets(all);
            Map<TopicPartition, Long> lacking = new HashMap<>(consumer.endOffsets(all));
            starts.forEach(consumer::seek);
            while (!lacking.isEmpty() && System.nanoTime() < untilNs) {
                var polled = consumer.poll(Duration.ofSeconds(1));
                for (var partition : polled.partitions()) {
                    var run = new ArrayList<ConsumerRecord<String, String>>();
                    for (var one : polled.records(partition)) {
                        if (!run.isEmpty() && one.offset() != run.get(run.size() - 1).offset() + 1) {
                            recordRun(partition.partition(), scan, run);
                            run.clear();
                        }
                        run.add(one);
                    }
                    recordRun(partition.partition(), scan, run);
                }
                for (var partition : new ArrayList<>(lacking.keySet())) {
                    long position = consumer.position(partition);
                    if (position >= lacking.get(partition)) {
                        lacking.remove(partition);
                        if (last) {
                            record("end", ", \"partition\": \"" + partition + "\", \"scan\": " + scan + ", \"offset\": "
                                + starts.get(partition) + ", \"until\": " + position);
                        }
                    }
                }
            }
            return lacking.isEmpty();
        } catch (OffsetOutOfRangeException shorter) {
            return false; // a log became shorter: the next scan sees what it has now
        } catch (KafkaException noAnswer) {
            return false;
        }
    }

    public static void main(String[] words) throws Exception {
        name = words[1];
        bootstrap = words[2];
        topic = words[3];
        partitions = Integer.parseInt(words[4]);
        beganNs = Long.parseLong(words[5]);
        untilNs = Long.parseLong(words[6]);
        switch (words[0]) {
            case "produce" -> produce();
            case "scan" -> {
                for (int scan = 0; System.nanoTime() < untilNs; scan++) {
                    long next = System.nanoTime() + SCAN_EVERY_NS;
                    scanOnce(scan, false);
                    TimeUnit.NANOSECONDS.sleep(Math.min(next, untilNs) - System.nanoTime());
                }
            }
            case "final" -> {
                for (int scan = 0; !scanOnce(scan, true); scan++) {
                    if (System.nanoTime() >= untilNs) {
                        System.err.println("not everything could be read");
                        System.exit(1);
                    }
                }
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}
