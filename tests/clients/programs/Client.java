// The Java client: `produce BOOTSTRAP TOPIC` sends each line of its input and prints it when it is
// acknowledged; `consume BOOTSTRAP TOPIC`; `delete BOOTSTRAP TOPIC OFFSET` prints where the log starts
// then. Its defaults, but for idempotence, which is the default from 3.0 on.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Client {
    public static void main(String[] words) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[1]);
        if (words[0].equals("produce")) {
            settings.put("enable.idempotence", "true");
            var text = new StringSerializer();
            try (var producer = new KafkaProducer<String, String>(settings, text, text)) {
                var lines = new BufferedReader(new InputStreamReader(System.in));
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    producer.send(new ProducerRecord<>(words[2], line)).get();
                    System.out.println(line);
                }
            }
            return;
        }
        if (words[0].equals("delete")) {
            var partition = new TopicPartition(words[2], 0);
            var before = RecordsToDelete.beforeOffset(Long.parseLong(words[3]));
            try (var administrator = Admin.create(settings)) {
                var results = administrator.deleteRecords(Map.of(partition, before)).lowWatermarks();
                System.out.println(results.get(partition).get().lowWatermark());
            }
            return;
        }
        settings.put("group.id", "group-" + words[2]);
        settings.put("auto.offset.reset", "earliest");
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<String, String>(settings, text, text)) {
            consumer.subscribe(List.of(words[2]));
            while (true) {
                for (var record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(record.value());
                }
            }
        }
    }
}
