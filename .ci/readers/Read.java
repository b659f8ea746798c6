// Reads the files named on the lines of standard input with Tika, and prints a JSON
// line with the text of each. With an argument, embedded files are left out.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import org.apache.tika.extractor.DocumentSelector;
import org.apache.tika.io.TikaInputStream;
import org.apache.tika.metadata.Metadata;
import org.apache.tika.metadata.TikaCoreProperties;
import org.apache.tika.parser.AutoDetectParser;
import org.apache.tika.parser.ParseContext;
import org.apache.tika.parser.ocr.TesseractOCRConfig;
import org.apache.tika.sax.BodyContentHandler;

public class Read {
    public static void main(String[] args) throws Exception {
        var parser = new AutoDetectParser();
        var out = new PrintStream(System.out, true, "UTF-8");
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String path; (path = in.readLine()) != null; ) {
            var text = new BodyContentHandler(-1);
            var noScans = new TesseractOCRConfig();
            noScans.setSkipOcr(true);
            var context = new ParseContext();
            context.set(TesseractOCRConfig.class, noScans);
            if (args.length > 0) {
                context.set(DocumentSelector.class, embedded -> false);
            }
            var metadata = new Metadata();
            metadata.set(TikaCoreProperties.RESOURCE_NAME_KEY, Path.of(path).getFileName().toString());
            try (var stream = TikaInputStream.get(Path.of(path))) {
                parser.parse(stream, text, metadata, context);
            } catch (Exception | StackOverflowError e) {
                System.err.println(path + ": " + e);
            }
            out.println("{\"path\":\"" + escape(path) + "\",\"text\":\"" + escape(text.toString()) + "\"}");
        }
    }

    static String escape(String s) {
        var b = new StringBuilder();
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\' || c < ' ' || Character.isSurrogate(c)) {
                b.append(String.format("\\u%04x", (int) c));
            } else {
                b.append(c);
            }
        }
        return b.toString();
    }
}
