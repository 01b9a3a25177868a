import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** A server that is there before it is needed: while it stands by it answers 503, from POST /activate to POST /idle what it is for. */
class WarmServer {
    private static final ReadWriteLock orders = new ReentrantReadWriteLock(); // requests share it, an order waits until none is at work
    private static boolean serves = !"follower".equals(System.getenv("UNDERSTUDY_ROLE")); // so it is as well without Understudy

    public static void main(String[] args) throws Exception {
        Thread.sleep((long) (1000 * Double.parseDouble(System.getenv().getOrDefault("LOADS_FOR", "0")))); // a real one loads its data now

        HttpServer server = HttpServer.create(new InetSocketAddress(8080), 0);
        server.setExecutor(Executors.newCachedThreadPool()); // a slow request does not hold up the checks and orders
        server.createContext("/healthz", exchange -> answer(exchange, 200, "ok")); // both those that serve and those that stand by are well
        server.createContext("/activate", exchange -> order(exchange, true));
        server.createContext("/idle", exchange -> order(exchange, false));
        server.createContext("/", WarmServer::work);
        server.start();
    }

    private static void work(HttpExchange exchange) throws IOException {
        Lock request = orders.readLock();
        request.lock();
        try {
            answer(exchange, serves ? 200 : 503, serves ? System.getenv().getOrDefault("UNDERSTUDY_NODE", "") : "");
        } finally {
            request.unlock();
        }
    }

    private static void order(HttpExchange exchange, boolean toServe) throws IOException {
        if (!exchange.getRequestMethod().equals("POST") || !exchange.getRemoteAddress().getAddress().isLoopbackAddress()) {
            answer(exchange, 403, ""); // anybody could activate it otherwise
            return;
        }
        Lock order = orders.writeLock();
        order.lock();
        try {
            serves = toServe;
        } finally {
            order.unlock();
        }
        answer(exchange, 204, "");
    }

    private static void answer(HttpExchange exchange, int status, String text) throws IOException {
        byte[] body = text.getBytes();
        try (exchange) {
            exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
        }
    }
}
