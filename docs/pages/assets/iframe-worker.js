// Search runs in a worker, and a browser starts no worker for a page that it opened from a file.
// There, an invisible frame takes the place of the worker.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      frame.onload = () => {
        frame.onload = null;
        this.scope = frame.contentWindow;
        this.scope.postMessage = (data) => {
          const event = new MessageEvent("message", { data });
          this.dispatchEvent(event);
          if (this.onmessage) this.onmessage(event);
        };
        this.scope.importScripts = (...sources) => Promise.all(sources.map((one) => this.load(one)));
        this.load(url).then(() => {
          this.waiting.forEach((data) => this.send(data));
          this.waiting = null;
        });
      };
      document.body.appendChild(frame);
    }
    load(source) {
      return new Promise((done, failed) => {
        const script = this.scope.document.createElement("script");
        script.src = source;
        script.onload = done;
        script.onerror = failed;
        this.scope.document.head.appendChild(script);
      });
    }
    send(data) {
      this.scope.dispatchEvent(new this.scope.MessageEvent("message", { data }));
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.send(data);
    }
    terminate() {}
  };
  window.Worker = window.IFrameWorker;
}
