import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;

/**
 * Reads one case per line from standard input, plays it on a collection of the Scala library in the
 * class path, and prints the order in which that collection lists its elements.
 *
 * A case is a collection, the type of its elements, and additions and removals, separated by blanks:
 * {@code immutable.HashSet int +5 +1 -5}. Reflection, for the signatures differ between the versions
 * of Scala.
 */
public class ScalaOrders {
    public static void main(String[] args) throws Exception {
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            System.out.println(play(line.split(" ")));
        }
    }

    private static String play(String[] words) throws Exception {
        boolean isMap = words[0].endsWith("Map"), isMutable = words[0].startsWith("mutable.");
        Object collection = isMutable
            ? Class.forName("scala.collection." + words[0]).getConstructor().newInstance()
            : call(module("scala.collection.immutable." + words[0].split("\\.")[1]), "empty");
        for (int i = 2; i < words.length; i++) {
            String text = words[i].substring(1);
            Object element = words[1].equals("int") ? Integer.valueOf(text) : text;
            boolean isAddition = words[i].charAt(0) == '+';
            if (isMutable && isMap && isAddition) {
                call(collection, "put", element, "");
            } else if (isMutable) {
                call(collection, isAddition ? "add" : "remove", element);
            } else if (isMap && isAddition) {
                collection = call(collection, "updated", element, "");
            } else {
                collection = call(collection, isAddition ? "$plus" : "$minus", element);
            }
        }
        Object iterator = call(collection, isMap ? "keysIterator" : "iterator");
        StringBuilder order = new StringBuilder();
        while ((Boolean) call(iterator, "hasNext")) {
            order.append(order.length() == 0 ? "" : " ").append(call(iterator, "next"));
        }
        return order.toString();
    }

    private static Object module(String name) throws Exception {
        return Class.forName(name + "$").getField("MODULE$").get(null);
    }

    private static Object call(Object target, String name, Object... arguments) throws Exception {
        for (Method method : target.getClass().getMethods()) {
            boolean isGeneral = method.getParameterCount() == arguments.length;
            for (Class<?> type : method.getParameterTypes()) {
                isGeneral &= type == Object.class;
            }
            if (method.getName().equals(name) && isGeneral) {
                method.setAccessible(true);
                return method.invoke(target, arguments);
            }
        }
        throw new NoSuchMethodException(target.getClass() + " " + name);
    }
}
