import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.util.ToolRunner;

/**
 * Hadoop's own shell, many commands in one virtual machine. Arguments: key=value of its configuration. Standard input: a command a line, its
 * words apart by tabs. Standard output, for each: "code output-bytes error-bytes", a line end, and the bytes of both.
 */
public final class ShellLoop {
  public static void main(String[] keys) throws Exception {
    final Configuration configuration = new Configuration();
    for (String key : keys) {
      final int equals = key.indexOf('=');
      configuration.set(key.substring(0, equals), key.substring(equals + 1));
    }
    final PrintStream answers = System.out;
    final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      final ByteArrayOutputStream output = new ByteArrayOutputStream();
      final ByteArrayOutputStream errors = new ByteArrayOutputStream();
      System.setOut(new PrintStream(output, true, "UTF-8"));
      System.setErr(new PrintStream(errors, true, "UTF-8"));
      int code;
      try {
        code = ToolRunner.run(configuration, new FsShell(), line.split("\t", -1));
      } catch (Throwable failure) {
        failure.printStackTrace(System.err);
        code = 255;
      }
      System.out.flush();
      System.err.flush();
      answers.println(code + " " + output.size() + " " + errors.size());
      output.writeTo(answers);
      errors.writeTo(answers);
      answers.flush();
    }
  }
}
